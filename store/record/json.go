package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Encode gives an evaluation as JSON, in one line with a newline at its end:
// the contract of report.json. A nil list is written as [] and nil params as
// {}; times that JSON cannot hold (a zone of 24 hours, a year past 9999, both
// of which mail can claim) are brought to UTC or, failing that, to the zero
// time; bytes that are not UTF-8 become U+FFFD. Figures that are not finite are
// an error. Save stores the same bytes.
func Encode(e *Evaluation) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(normal(e)); err != nil {
		return nil, fmt.Errorf("encode evaluation %s: %w", e.ID, err)
	}
	// The encoder escapes the U+FFFD that it puts for a bad byte, but not one
	// that was there: written alike, what was read back encodes to the same bytes.
	return bytes.ReplaceAll(b.Bytes(), []byte("\ufffd"), []byte(`\ufffd`)), nil
}

// Decode reads what Encode wrote.
func Decode(record []byte) (*Evaluation, error) {
	e := new(Evaluation)
	if err := json.Unmarshal(record, e); err != nil {
		return nil, fmt.Errorf("decode evaluation: %w", err)
	}
	e.Created = e.Created.UTC()
	return e, nil
}

// normal is a copy of e that encodes as the contract wants it. e is not changed.
func normal(e *Evaluation) *Evaluation {
	c := *e
	c.Created = plainTime(e.Created).UTC()
	c.Versions = list(e.Versions)
	c.Failures = list(e.Failures)
	c.Claims = list(e.Claims)
	c.Warnings = list(e.Warnings)
	c.Results = slices.Clone(list(e.Results))
	for i := range c.Results {
		r := &c.Results[i]
		r.Values, r.Steps, r.Warnings = list(r.Values), list(r.Steps), list(r.Warnings)
		if r.Params == nil {
			r.Params = map[string]string{}
		}
	}
	if e.Series != nil {
		s := *e.Series
		c.Series = &s
		s.Date = plainTime(s.Date)
		s.Tags, s.Missing, s.Lists = list(s.Tags), list(s.Missing), list(s.Lists)
		s.Patches = slices.Clone(list(s.Patches))
		for i := range s.Patches {
			p := &s.Patches[i]
			p.Date, p.Files = plainTime(p.Date), list(p.Files)
		}
	}
	if e.Conflict != nil {
		k := *e.Conflict
		c.Conflict = &k
		k.Files = list(k.Files)
	}
	return &c
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func plainTime(t time.Time) time.Time {
	t = t.Round(0)
	for _, u := range []time.Time{t, t.UTC()} {
		if _, err := u.MarshalJSON(); err == nil {
			return u
		}
	}
	return time.Time{}
}
