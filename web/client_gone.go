package web

import (
	"context"
	"errors"
	"net/http"
)

// errClientGone marks a failure to send an answer: the network's between us
// and the client, not the database's. Nothing is wrong with us, and nobody is
// left to be told.
var errClientGone = errors.New("the client is gone")

// clientWriter marks what fails on the way to the client, since a broken
// connection to the database reads the same.
type clientWriter struct{ http.ResponseWriter }

func (w clientWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		err = errors.Join(errClientGone, err)
	}
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w clientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// clientGone reports whether a failure is the client's leaving.
func clientGone(err error) bool {
	return errors.Is(err, errClientGone) || errors.Is(err, context.Canceled)
}
