package route

import (
	"net/url"
	"testing"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Job("a/b?c"):                        "/jobs/a%2Fb%3Fc",
		JobAction("7", Replay):              "/jobs/7/replay",
		Replay.Pattern():                    "/jobs/:id/replay",
		JobView("7", 2, "diff"):             "/jobs/7?version=2&view=diff#payload",
		JobView("7", 0, ""):                 "/jobs/7#payload",
		JobsWhere(ParamStatus, "open"):      "/jobs?status=open",
		JobsWhere(ParamStatus, ""):          "/jobs",
		AuditWhere(ParamObject, "a b&c"):    "/audit?object=a+b%26c",
		EndSession("x"):                     "/account/sessions/x/end",
		Change(&url.URL{}, "env", "x"):      "/?env=x",
		Change(parse("/jobs?cursor=1&a=b")): "/jobs?a=b",
		Change(parse("/jobs?a=b"), "a", ""): "/jobs",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func parse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
