package dlq

import (
	"math"
	"strconv"
)

// attempts reads attempts[], in the order they were sent.
func (p *parser) attempts(doc *Document) {
	m, ok := p.fields["attempts"]
	if !ok || isNull(m.value) {
		return
	}
	if m.value[0] != '[' {
		p.keep(fieldError("/attempts", "/attempts must be a list, not %s.", kindOf(m.value)))
		return
	}
	s := &scanner{b: p.raw, pos: m.pos}
	list, err := s.elements(1)
	if err != nil {
		p.keep(err)
		return
	}
	if len(list) > MaxAttempts {
		p.keep(fieldError("/attempts", "/attempts has %d entries; at most %d are allowed. Send the last ones and their true number as attempt_count.", len(list), MaxAttempts))
		return
	}
	doc.Attempts = make([]AttemptDoc, 0, len(list))
	for i, e := range list {
		a, err := p.attempt("/attempts/"+strconv.Itoa(i), e)
		if err != nil {
			p.keep(err)
			return
		}
		doc.Attempts = append(doc.Attempts, a)
	}
}

func (p *parser) attempt(where string, e member) (AttemptDoc, error) {
	a := AttemptDoc{Raw: e.value}
	if e.value[0] != '{' {
		return a, fieldError(where, "%s must be an object, not %s.", where, kindOf(e.value))
	}
	s := &scanner{b: p.raw, pos: e.pos}
	members, err := s.object(where, 2)
	if err != nil {
		return a, err
	}
	for _, m := range members {
		place := where + "/" + m.key
		switch m.key {
		case "at":
			a.At = raw(m.value)
		case "error_class":
			a.ErrorClass, err = text(place, m.value)
		case "message":
			a.Message, err = text(place, m.value)
		case "stack":
			a.Stack, err = text(place, m.value)
		case "worker":
			a.Worker, err = text(place, m.value)
		case "worker_version":
			a.WorkerVersion, err = text(place, m.value)
		case "side_effect":
			a.SideEffect, err = textOrJSON(m.value)
		case "duration_ms":
			a.DurationMS, err = duration(place, m.value)
		case "cause":
			a.Causes, err = p.causes(place, m)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// causes reads a chain of {error_class, message, cause}, outermost first.
func (p *parser) causes(where string, m member) ([]CauseDoc, error) {
	var chain []CauseDoc
	for depth := 3; !isNull(m.value) && len(chain) < maxCauses; depth++ {
		if m.value[0] == '"' { // a cause that is only a text
			message, err := text(where, m.value)
			return append(chain, CauseDoc{Message: message}), err
		}
		if m.value[0] != '{' {
			return nil, fieldError(where, "%s must be an object {error_class, message, cause}, not %s.", where, kindOf(m.value))
		}
		s := &scanner{b: p.raw, pos: m.pos}
		members, err := s.object(where, depth)
		if err != nil {
			return nil, err
		}
		var c CauseDoc
		var deeper member
		for _, f := range members {
			place := where + "/" + f.key
			switch f.key {
			case "error_class":
				c.ErrorClass, err = text(place, f.value)
			case "message":
				c.Message, err = text(place, f.value)
			case "cause":
				deeper = f
			}
			if err != nil {
				return nil, err
			}
		}
		chain = append(chain, c)
		m, where = deeper, where+"/cause"
	}
	return chain, nil
}

// textOrJSON keeps a string, or any other value as its JSON text.
func textOrJSON(value []byte) (string, error) {
	if isNull(value) {
		return "", nil
	}
	if value[0] == '"' {
		s, _ := unquote(value)
		return s, nil
	}
	return string(value), nil
}

// duration reads milliseconds; a fraction is rounded, its digits stay in the
// attempt's raw text.
func duration(where string, value []byte) (*int64, error) {
	if isNull(value) {
		return nil, nil
	}
	if k := kindOf(value); k != "a number" {
		return nil, fieldError(where, "%s must be a number of milliseconds, not %s.", where, k)
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f < 0 || f > math.MaxInt32*1000 {
		return nil, fieldError(where, "%s must be a number of milliseconds between 0 and %d.", where, int64(math.MaxInt32)*1000)
	}
	ms := int64(math.Round(f))
	return &ms, nil
}
