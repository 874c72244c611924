package dlq

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// SplitNDJSON yields the documents of a stream, one a line. A line above
// maxDoc bytes yields a TooLarge error in its place, names its number and
// doesn't stop the rest; it is skipped without being held in memory. An error
// of the reader itself is yielded once and ends the stream. Empty lines are
// skipped. Each document has memory of its own.
func SplitNDJSON(r io.Reader, maxDoc int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		for line := 1; ; line++ {
			doc, size, err := readLine(br, maxDoc)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			switch {
			case size > maxDoc:
				if !yield(nil, problem.New(problem.TooLarge, "The document in line %d has %d bytes; at most %d are allowed.", line, size, maxDoc)) {
					return
				}
			case len(doc) > 0:
				if !yield(doc, nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// readLine reads one line without its end and its white space. A line above
// limit is only counted.
func readLine(br *bufio.Reader, limit int) (line []byte, size int, err error) {
	for {
		part, err := br.ReadSlice('\n')
		size += len(part)
		if size <= limit+len("\r\n") {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size > limit+len("\r\n") {
			return nil, size, err
		}
		line = bytes.TrimSpace(line)
		return line, len(line), err
	}
}
