// Package failure holds the shape of one failed attempt that classification
// and grouping share.
package failure

// Failure is why one attempt failed, as the worker told it. Its texts are raw:
// they may hold secrets and are never shown.
type Failure struct {
	JobType string
	Class   string // the error's class or type name
	Message string
	Stack   string
	// Causes is the cause chain, outermost first; the error itself is not in it.
	Causes []Cause
	// GaveUp is the worker's word for why it stopped: attempts, window,
	// not_retryable, poison, cancelled, or empty.
	GaveUp string
}

// Cause is one link of a cause chain.
type Cause struct {
	Class   string
	Message string
}

// RootClass is the class of the innermost cause that has one, else the
// error's own: wrappers such as ListenerExecutionFailedException say nothing.
func (f Failure) RootClass() string {
	for i := len(f.Causes) - 1; i >= 0; i-- {
		if f.Causes[i].Class != "" {
			return f.Causes[i].Class
		}
	}
	return f.Class
}

// RootMessage is the message of the innermost cause that has one, else the
// error's own.
func (f Failure) RootMessage() string {
	for i := len(f.Causes) - 1; i >= 0; i-- {
		if f.Causes[i].Message != "" {
			return f.Causes[i].Message
		}
	}
	return f.Message
}
