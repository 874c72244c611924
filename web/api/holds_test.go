package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// TestHoldsByAPI: placed at once, explained later, lifted with a reason.
func TestHoldsByAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	operator := rbac.DemoToken(rbac.Operator)
	refused(t, b.post(t, rbac.DemoToken(rbac.Viewer), "/holds", `{"environment":"production"}`), http.StatusForbidden, "forbidden")
	refused(t, b.post(t, operator, "/holds", `{"environment":""}`), http.StatusUnprocessableEntity, "invalid", "/environment")
	r := b.post(t, operator, "/holds", `{"environment":"production","job_type":"mail"}`)
	if r.status != http.StatusCreated {
		t.Fatal(r)
	}
	at := fmt.Sprint("/holds/", r.number("id"))
	if r = b.post(t, operator, at+"/reason", `{"reason":"duplicates are looked into"}`); r.status != http.StatusOK {
		t.Error(r)
	}
	list, _ := b.get(t, rbac.Viewer, "/holds").json["items"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["job_type"] != "mail" || list[0].(map[string]any)["reason"] != "duplicates are looked into" {
		t.Errorf("held: %v", list)
	}
	refused(t, b.post(t, operator, at+"/lift", `{"reason":""}`), http.StatusUnprocessableEntity, "invalid", "/reason")
	if r = b.post(t, operator, at+"/lift", `{"reason":"it was a false alarm"}`); r.status != http.StatusOK || len(r.json["items"].([]any)) != 0 {
		t.Error(r)
	}
	refused(t, b.post(t, operator, at+"/lift", `{"reason":"once more"}`), http.StatusConflict, "conflict")
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action LIKE 'hold.%' AND actor_kind = 'token'`); n != 3 {
		t.Errorf("%d entries", n)
	}
}
