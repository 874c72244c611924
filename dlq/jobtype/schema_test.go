package jobtype_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	mail, _ := mustLoad(t, full).Type("send_welcome_email")
	const ok = `"user_id": 7, "to_email": "a@example.com", "send_id": "s1"`
	for name, tt := range map[string]struct {
		payload string
		want    []jobtype.SchemaError
	}{
		"fits":             {`{` + ok + `, "ratio": 1.50}`, nil},
		"broken address":   {`{"user_id": 7, "to_email": "alex@@example.com", "send_id": "s1"}`, []jobtype.SchemaError{{"/to_email", `doesn't have the form ^[^@\s]+@[^@\s]+$`}}},
		"missing":          {`{"user_id": 7, "send_id": "s1"}`, []jobtype.SchemaError{{"", `lacks "to_email"`}}},
		"wrong type":       {`{"user_id": "7", "to_email": "a@b", "send_id": "s1"}`, []jobtype.SchemaError{{"/user_id", "must be a whole number, not text"}}},
		"two faults":       {`{"user_id": 0, "to_email": "a@b", "send_id": ""}`, []jobtype.SchemaError{{"/send_id", "must not be empty"}, {"/user_id", "must be at least 1"}}},
		"unknown field":    {`{` + ok + `, "bcc": "x"}`, []jobtype.SchemaError{{"", `has unknown "bcc"`}}},
		"enum":             {`{` + ok + `, "locale": "fr"}`, []jobtype.SchemaError{{"/locale", `must be one of "en", "de"`}}},
		"huge number":      {`{` + ok + `, "ratio": 1e400}`, []jobtype.SchemaError{{"/ratio", "must be at most 10"}}},
		"absurd number":    {`{` + ok + `, "ratio": 1e999999999}`, []jobtype.SchemaError{{"/ratio", "must be at most 10"}}},
		"absurdly small":   {`{` + ok + `, "ratio": -1e-999999999}`, []jobtype.SchemaError{{"/ratio", "must be a multiple of 0.5"}}},
		"exact id":         {`{"user_id": 9007199254740993, "to_email": "a@b", "send_id": "s1"}`, nil},
		"whole as decimal": {`{"user_id": 1E3, "to_email": "a@b", "send_id": "s1"}`, nil},
		"no JSON":          {`{"user_id": 7,`, []jobtype.SchemaError{{"", "is not JSON: it ends too early"}}},
		"bad JSON":         {`{"user_id": x}`, []jobtype.SchemaError{{"", "is not JSON: it breaks at byte 13"}}},
		"two documents":    {`{` + ok + `} {}`, []jobtype.SchemaError{{"", "is not one JSON document: it ends at byte 60 and more follows"}}},
		"empty":            {"", []jobtype.SchemaError{{"", "is empty, so it isn't JSON"}}},
		"bytes":            {"\xe9", []jobtype.SchemaError{{"", "is not UTF-8 text, so it can't be JSON"}}},
	} {
		got, err := mail.Validate(1, []byte(tt.payload))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestValidateNeverQuotesThePayload(t *testing.T) {
	t.Parallel()
	mail, _ := mustLoad(t, full).Type("send_welcome_email")
	const secret = "hunter2"
	for _, payload := range []string{
		`{"user_id": "hunter2", "to_email": "hunter2", "send_id": "s"}`,
		`{"user_id": 1, "to_email": "a@b", "send_id": "s", "locale": "hunter2"}`,
		`"hunter2"`, `hunter2`,
	} {
		got, err := mail.Validate(1, []byte(payload))
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %v, %v", payload, got, err)
		}
		for _, e := range got {
			if strings.Contains(e.Message+e.Pointer, secret) {
				t.Errorf("%s: message repeats it: %+v", payload, e)
			}
		}
	}
}

func TestValidateVersions(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, full)
	mail, _ := c.Type("send_welcome_email")
	if got, err := mail.Validate(0, []byte(`{}`)); err != nil || len(got) == 0 {
		t.Errorf("version 0 is judged as 1, got %v, %v", got, err)
	}
	if _, err := mail.Validate(9, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "version 9 (it has 1)") {
		t.Errorf("an undeclared version can't be judged, got %v", err)
	}
	charge, _ := c.Type("charge_card")
	if got, err := charge.Validate(3, []byte("no JSON at all")); err != nil || got != nil {
		t.Errorf("a type without schemas accepts everything, got %v, %v", got, err)
	}
}
