// Package jsonl reads and writes the record of samples: samples.jsonl, one JSON
// object to a line.
//
//	{"round":1,"version":0,"benchmark":"hash","metric":"cpu","unit":"s","value":0.0412,"position":2,"covariates":{"nivcsw":3,"psi_ns":120000}}
//	{"round":1,"version":3,"benchmark":"sort","metric":"wall","unit":"s","failed":{"signal":"SIGSEGV","status":139},"position":0}
//
// In go samples or lines, out come the other. What they mean is not known here.
package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
)

// Bounds on a samples file, so that a hostile one cannot ask for endless tables.
const (
	maxLine    = 1 << 20
	maxVersion = 10_000
	maxRound   = 1_000_000
)

// line is a bench.Sample as it stands in a file: what may be missing is a
// pointer. The order of fields is the order in which they are written.
type line struct {
	Round      *int               `json:"round"`
	Version    *int               `json:"version"`
	Benchmark  string             `json:"benchmark"`
	Params     map[string]string  `json:"params,omitempty"`
	Metric     string             `json:"metric"`
	Unit       string             `json:"unit"`
	Value      *float64           `json:"value,omitempty"`
	Twin       bool               `json:"twin,omitempty"`
	Failed     *bench.Failed      `json:"failed,omitempty"`
	Discarded  string             `json:"discarded,omitempty"`
	Position   *int               `json:"position,omitempty"`
	Covariates map[string]float64 `json:"covariates,omitempty"`
}

// Write writes samples as lines, as Read reads them. A line of a failed run has no value.
func Write(w io.Writer, samples []bench.Sample) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	enc.SetEscapeHTML(false)
	for i, s := range samples {
		l := line{
			&s.Round, &s.Version, s.Benchmark, s.Params, s.Metric, s.Unit, &s.Value,
			s.Twin, s.Failed, s.Discarded, s.Position, s.Covariates,
		}
		if s.Failed != nil {
			l.Value = nil
		}
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write sample %d (%s %s): %w", i+1, bench.RowName(s.Benchmark, s.Params), s.Metric, err)
		}
	}
	return bw.Flush()
}

// Read reads the lines of a samples file, which name stands for in
// errors. It is strict: an unknown field, a figure that is no finite number or
// is negative with no baseline beside it, a second figure for the same run or another unit for the same row
// is an error with its line. Empty lines are passed over. Values are taken in
// the unit that they state.
func Read(name string, r io.Reader) ([]bench.Sample, error) {
	type run struct {
		round, version int
		twin           bool
		row            string
	}
	type unit struct {
		name string
		line int
	}
	type below struct {
		run
		line  int
		value float64
	}
	var list []bench.Sample
	less := map[run]bool{} // runs from whose figures a baseline was subtracted
	var negative []below
	seen := map[run]int{}
	units := map[string]unit{}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for sc.Scan() {
		n++
		text := bytes.TrimSpace(sc.Bytes())
		if len(text) == 0 {
			continue
		}
		s, err := readSample(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		row := bench.RowName(s.Benchmark, s.Params) + "\x00" + s.Metric
		if u, ok := units[row]; !ok {
			units[row] = unit{s.Unit, n}
		} else if u.name != s.Unit {
			return nil, fmt.Errorf("%s:%d: unit %q: %s of %s has unit %q in line %d", name, n, s.Unit, s.Metric, s.Benchmark, u.name, u.line)
		}
		of := run{s.Round, s.Version, s.Twin, bench.RowName(s.Benchmark, s.Params)}
		if strings.HasPrefix(s.Metric, bench.OfBaseline) {
			less[of] = true
		}
		if s.Value < 0 {
			if strings.HasPrefix(s.Metric, bench.OfBaseline) {
				of = run{} // which is no run's
			}
			negative = append(negative, below{of, n, s.Value})
		}
		if s.Discarded == "" {
			k := run{s.Round, s.Version, s.Twin, row}
			if l := seen[k]; l != 0 {
				return nil, fmt.Errorf("%s:%d: %s of %s stands in line %d already for round %d of version %d: remove one, or mark it as discarded",
					name, n, s.Metric, s.Benchmark, l, s.Round, s.Version)
			}
			seen[k] = n
		}
		list = append(list, s)
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: longer than %d KiB: not a line of samples", name, n+1, maxLine>>10)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for _, b := range negative {
		if !less[b.run] {
			return nil, fmt.Errorf("%s:%d: value %v: must be finite and not negative", name, b.line, b.value)
		}
	}
	return list, nil
}

// notANumber finds the words that some programs print for figures; JSON has none.
var notANumber = late.Regexp(`:\s*[-+]?(?i:nan|inf|infinity)\b`)

func readSample(text []byte) (bench.Sample, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number "):
			return bench.Sample{}, fmt.Errorf("%s: %s does not fit", wrong.Field, wrong.Value)
		case errors.As(err, &wrong) && wrong.Field == "":
			return bench.Sample{}, fmt.Errorf("not an object (%s): one JSON object to a line", wrong.Value)
		case errors.As(err, &wrong):
			return bench.Sample{}, fmt.Errorf("%s: a %s stands where a %s belongs", wrong.Field, wrong.Value, wrong.Type)
		case notANumber().Match(text):
			return bench.Sample{}, errors.New("NaN and Inf are no values: leave the line out, or give failed instead of value")
		case errors.Is(err, io.ErrUnexpectedEOF):
			return bench.Sample{}, errors.New("the line breaks off: one JSON object to a line")
		}
		return bench.Sample{}, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bench.Sample{}, errors.New("text behind the object: one JSON object to a line")
	}
	if err := l.check(); err != nil {
		return bench.Sample{}, err
	}
	s := bench.Sample{
		Round: *l.Round, Version: *l.Version, Benchmark: l.Benchmark, Metric: l.Metric, Unit: l.Unit,
		Twin: l.Twin, Failed: l.Failed, Discarded: l.Discarded, Position: l.Position,
	}
	// Missing and empty mean the same.
	if len(l.Params) > 0 {
		s.Params = l.Params
	}
	if len(l.Covariates) > 0 {
		s.Covariates = l.Covariates
	}
	if l.Value != nil {
		s.Value = *l.Value
	}
	return s, nil
}

func (l line) check() error {
	switch {
	case l.Round == nil:
		return errors.New("no round")
	case *l.Round < 1 || *l.Round > maxRound:
		return fmt.Errorf("round %d: must be 1 to %d", *l.Round, maxRound)
	case l.Version == nil:
		return errors.New("no version")
	case *l.Version < 0 || *l.Version > maxVersion:
		return fmt.Errorf("version %d: must be 0 (the base) to %d", *l.Version, maxVersion)
	case l.Twin && *l.Version != 0:
		return fmt.Errorf("version %d is marked as a twin: only the base, version 0, has one", *l.Version)
	case l.Benchmark == "":
		return errors.New("no benchmark")
	case l.Metric == "":
		return errors.New("no metric")
	case l.Unit == "":
		return errors.New(`no unit: "s", "B", "1" or the tool's own`)
	case l.Value == nil && l.Failed == nil:
		return errors.New("neither value nor failed")
	case l.Value != nil && l.Failed != nil:
		return errors.New("both value and failed")
	case l.Value != nil && (math.IsNaN(*l.Value) || math.IsInf(*l.Value, 0)):
		return fmt.Errorf("value %v: must be finite", *l.Value)
	case l.Failed != nil && *l.Failed == bench.Failed{}:
		return errors.New("failed says neither signal, nor status, nor reason")
	case l.Position != nil && *l.Position < 0:
		return fmt.Errorf("position %d: must not be negative", *l.Position)
	}
	return nil
}
