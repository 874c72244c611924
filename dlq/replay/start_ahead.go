package replay

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// lookAhead judges once more the payloads of the replays that the next part of a
// start takes, and returns those that may not go, by replay: since the plan a
// schema may have become stricter, and what a job needs may be gone. It looks
// before the part holds any job, since a check may take seconds; a payload
// version never changes, so what it found stays true of it.
func (s *Service) lookAhead(ctx context.Context, batch int64) (blocked map[int64]Verdict, err error) {
	err = pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		st, ok, err := s.toStart(ctx, tx, batch, "")
		if err != nil || !ok {
			return err
		}
		j := judging{Environment: st.Environment, JobType: st.JobType, Now: s.now()}
		if j.Type, _ = s.Types().Type(st.JobType); j.Type == nil || len(j.Type.SchemaFiles)+len(j.Type.Checks) == 0 {
			return nil // by their facts they are judged later
		}
		items, _, err := s.nextToStart(ctx, tx, st, "")
		if err != nil {
			return err
		}
		blocked, err = s.judgeAhead(ctx, tx, j, items)
		return err
	})
	return blocked, err
}

func (s *Service) judgeAhead(ctx context.Context, tx pgx.Tx, j judging, items []Item) (map[int64]Verdict, error) {
	jobs, of := make([]int64, len(items)), make(map[int64]Item, len(items))
	for i, it := range items {
		jobs[i], of[it.DeadJobID] = it.DeadJobID, it
	}
	all, err := factsOf(ctx, tx, jobs, "")
	if err != nil {
		return nil, err
	}
	blocked := map[int64]Verdict{}
	// As few at once as in the plan: what had time to be checked then has it now.
	for part := range slices.Chunk(all, s.planChunk(j.JobType)) {
		verdicts := make([]Verdict, len(part))
		for i := range verdicts {
			verdicts[i].Code = Eligible
		}
		if err := s.judgePayloads(ctx, tx, j, part, verdicts); err != nil {
			return nil, err
		}
		for i, f := range part {
			if it := of[f.ID]; verdicts[i].Code != Eligible && f.PayloadVersion == it.PayloadVersion {
				blocked[it.ReplayID] = verdicts[i]
			}
		}
	}
	return blocked, nil
}
