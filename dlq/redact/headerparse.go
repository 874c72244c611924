package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ParseHeaders reads captured headers: a JSON object, or a list of [name,
// value] pairs where order and repeats matter. A value is a string, a number,
// true, false, null, {"base64": …} for bytes, or any other JSON. Null and
// nothing are no headers. Numbers and nested JSON keep their exact bytes.
//
// The errors name the place that is wrong and never quote a value.
func ParseHeaders(raw json.RawMessage) ([]Header, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	switch raw[0] {
	case '{':
		return headerObject(raw)
	case '[':
		var pairs []json.RawMessage
		if err := json.Unmarshal(raw, &pairs); err != nil {
			return nil, fmt.Errorf("headers are not valid JSON: send an object or a list of [name, value] pairs")
		}
		headers := make([]Header, 0, len(pairs))
		for i, p := range pairs {
			h, err := headerPair(p)
			if err != nil {
				return nil, fmt.Errorf("headers[%d] %w", i, err)
			}
			headers = append(headers, h)
		}
		return headers, nil
	}
	return nil, fmt.Errorf("headers must be an object or a list of [name, value] pairs")
}

// headerObject reads {"name": value, …} in its order, repeats included.
func headerObject(raw json.RawMessage) ([]Header, error) {
	bad := fmt.Errorf("headers are not valid JSON: send an object or a list of [name, value] pairs")
	if !json.Valid(raw) {
		return nil, bad
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, bad
	}
	var headers []Header
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, bad
		}
		var val json.RawMessage
		if err := dec.Decode(&val); err != nil {
			return nil, bad
		}
		v, err := headerValue(val)
		if err != nil {
			return nil, fmt.Errorf("headers[%d] %w", len(headers), err)
		}
		headers = append(headers, Header{Name: name.(string), Value: v})
	}
	return headers, nil
}

func headerPair(raw json.RawMessage) (Header, error) {
	var pair []json.RawMessage
	if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
		return Header{}, fmt.Errorf("must be a pair of a name and a value")
	}
	var h Header
	if len(pair[0]) == 0 || pair[0][0] != '"' || json.Unmarshal(pair[0], &h.Name) != nil {
		return Header{}, fmt.Errorf("must have a string as its name")
	}
	var err error
	h.Value, err = headerValue(pair[1])
	return h, err
}

func headerValue(raw json.RawMessage) (Value, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		return Value{Kind: ValueText, Text: unescape(string(raw[1 : len(raw)-1]))}, nil
	case 'n':
		return Value{Kind: ValueNull}, nil
	case 't', 'f':
		return Value{Kind: ValueBool, Text: string(raw)}, nil
	case '{':
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil && len(fields) == 1 {
			if enc, ok := fields["base64"]; ok && len(enc) > 0 && enc[0] == '"' {
				b, ok := base64Bytes(strings.TrimSpace(unescape(string(enc[1 : len(enc)-1]))))
				if !ok {
					return Value{}, fmt.Errorf("holds base64 that can't be decoded")
				}
				return Value{Kind: ValueBytes, Bytes: b}, nil
			}
		}
		return Value{Kind: ValueJSON, Text: string(raw)}, nil
	case '[':
		return Value{Kind: ValueJSON, Text: string(raw)}, nil
	}
	return Value{Kind: ValueNumber, Text: string(raw)}, nil
}
