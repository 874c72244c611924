package failure_test

import (
	"testing"

	"github.com/redrive-dlq/redrive/dlq/failure"
)

func TestRoot(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Class: "Outer", Message: "outer"}
	if f.RootClass() != "Outer" || f.RootMessage() != "outer" {
		t.Errorf("without causes: %q %q", f.RootClass(), f.RootMessage())
	}
	f.Causes = []failure.Cause{{Class: "Middle", Message: "middle"}, {Class: "Root"}, {Message: "deepest"}}
	if f.RootClass() != "Root" || f.RootMessage() != "deepest" {
		t.Errorf("with causes: %q %q", f.RootClass(), f.RootMessage())
	}
}
