-- +goose Up
-- What the optional triggers on an application's river_job call. It runs with
-- its owner's rights, so that the application's own role needs none here; the
-- arguments are environment and source. A death that is taken already isn't
-- told again when its row is deleted, or River's cleaner would fill the inbox.
-- +goose StatementBegin
CREATE FUNCTION redrive.river_death() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE dead record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        dead := OLD;
        IF EXISTS (
            SELECT
            FROM redrive.river_deaths d
            WHERE d.environment = TG_ARGV[0] AND d.source = TG_ARGV[1]
              AND d.river_id = dead.id AND d.attempt = dead.attempt AND d.finalized_at = dead.finalized_at
        ) THEN
            RETURN NULL;
        END IF;
    ELSE
        dead := NEW;
    END IF;
    INSERT INTO redrive.river_inbox (environment, source, job)
    VALUES (TG_ARGV[0], TG_ARGV[1], to_json(dead)::text);
    RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION redrive.river_death() FROM PUBLIC;
-- +goose Down
DROP FUNCTION redrive.river_death() CASCADE;
