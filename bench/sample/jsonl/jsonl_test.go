package jsonl

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func at(n int) *int { return &n }

var recorded = []bench.Sample{
	{Round: 1, Benchmark: "grep", Params: map[string]string{"threads": "4", "a": "<&>"}, Metric: "wall", Unit: "s", Value: 0.1, Position: at(0), Covariates: map[string]float64{"psi_ns": 12, "nivcsw": 3}},
	{Round: 1, Benchmark: "grep", Metric: "cpu", Unit: "s", Value: 0, Twin: true, Position: at(3)},
	{Round: 2, Version: 3, Benchmark: "grep", Metric: "wall", Unit: "s", Failed: &bench.Failed{Signal: "SIGSEGV", Status: 139}, Discarded: "failed"},
	{Round: 2, Version: 3, Benchmark: "grep", Metric: "wall", Unit: "s", Failed: &bench.Failed{Status: -1, Reason: "timed out after 600 s"}},
	{Round: 2, Version: 4, Benchmark: "grep", Metric: "rss", Unit: "B", Value: 1e15 + 1, Discarded: "stall"},
	{Round: 2, Version: 4, Benchmark: "grep", Metric: "rss", Unit: "B", Value: math.SmallestNonzeroFloat64},
}

func TestWrite(t *testing.T) {
	var buf bytes.Buffer
	if err := Write(&buf, recorded); err != nil {
		t.Fatal(err)
	}
	want := `{"round":1,"version":0,"benchmark":"grep","params":{"a":"<&>","threads":"4"},"metric":"wall","unit":"s","value":0.1,"position":0,"covariates":{"nivcsw":3,"psi_ns":12}}
{"round":1,"version":0,"benchmark":"grep","metric":"cpu","unit":"s","value":0,"twin":true,"position":3}
{"round":2,"version":3,"benchmark":"grep","metric":"wall","unit":"s","failed":{"signal":"SIGSEGV","status":139},"discarded":"failed"}
{"round":2,"version":3,"benchmark":"grep","metric":"wall","unit":"s","failed":{"status":-1,"reason":"timed out after 600 s"}}
{"round":2,"version":4,"benchmark":"grep","metric":"rss","unit":"B","value":1000000000000001,"discarded":"stall"}
{"round":2,"version":4,"benchmark":"grep","metric":"rss","unit":"B","value":5e-324}
`
	if d := cmp.Diff(want, buf.String()); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	back, err := Read("samples.jsonl", &buf)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(recorded, back); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		err := Write(&bytes.Buffer{}, []bench.Sample{{Benchmark: "b", Metric: "wall", Value: v}})
		if err == nil || !strings.Contains(err.Error(), "sample 1 (b wall)") {
			t.Errorf("value %v: error = %v", v, err)
		}
	}
	if err := Write(full{}, recorded); !errors.Is(err, errFull) {
		t.Errorf("no space: error = %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestRead(t *testing.T) {
	good := `{"round":1,"version":0,"benchmark":"b","params":{},"metric":"wall","unit":"s","value":1}`
	other := strings.Replace(good, `"version":0`, `"version":1`, 1)
	edit := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	tests := []struct {
		name, text string
		want       string // the error; "" for none
	}{
		{"nothing", "", ""},
		{"empty lines and CRLF", "\n" + good + "\r\n\n" + other, ""},
		{"params null", edit(`{}`, `null`), ""},
		{"discarded twice, then kept", strings.Repeat(edit(`"value"`, `"discarded":"stall","value"`)+"\n", 2) + good, ""},
		{"twin beside base", good + "\n" + edit(`"version":0`, `"version":0,"twin":true`), ""},
		{"no JSON", "round,version\n", "s.jsonl:1: invalid character 'r' looking for beginning of value"},
		{"breaks off", good + "\n" + good[:40], "s.jsonl:2: the line breaks off"},
		{"two objects", good + good, "s.jsonl:1: text behind the object"},
		{"array", "[1]", "s.jsonl:1: not an object (array): one JSON object to a line"},
		{"unknown field", edit(`"unit"`, `"units"`), `s.jsonl:1: unknown field "units"`},
		{"NaN", good + "\n" + edit(`:1}`, `:NaN}`), "s.jsonl:2: NaN and Inf are no values"},
		{"minus infinity", edit(`:1}`, `: -Infinity}`), "s.jsonl:1: NaN and Inf are no values"},
		{"1e309", edit(`:1}`, `:1e309}`), "s.jsonl:1: value: number 1e309 does not fit"},
		{"comma", edit(`:1}`, `:1,5}`), "s.jsonl:1: invalid character '5'"},
		{"text value", edit(`:1}`, `:"1"}`), "s.jsonl:1: value: a string stands where a float64 belongs"},
		{"negative value", edit(`:1}`, `:-1}`), "s.jsonl:1: value -1: must be finite and not negative"},
		{"negative, with what was subtracted", edit(`:1}`, `:-1}`) + "\n" + strings.Replace(good, `"wall"`, `"baseline-wall"`, 1), ""},
		{"negative, with what was subtracted elsewhere", edit(`:1}`, `:-1}`) + "\n" + strings.Replace(other, `"wall"`, `"baseline-wall"`, 1), "s.jsonl:1: value -1: must be finite and not negative"},
		{"negative baseline", strings.Replace(edit(`:1}`, `:-1}`), `"wall"`, `"baseline-wall"`, 1), "s.jsonl:1: value -1: must be finite and not negative"},
		{"value null", edit(`:1}`, `:null}`), "s.jsonl:1: neither value nor failed"},
		{"value and failed", edit(`:1}`, `:1,"failed":{"status":1}}`), "s.jsonl:1: both value and failed"},
		{"failed how", edit(`"value":1`, `"failed":{}`), "s.jsonl:1: failed says neither signal, nor status, nor reason"},
		{"no round", edit(`"round":1,`, ``), "s.jsonl:1: no round"},
		{"round 0", edit(`"round":1`, `"round":0`), "s.jsonl:1: round 0: must be 1 to"},
		{"round 1.5", edit(`"round":1`, `"round":1.5`), "s.jsonl:1: round: number 1.5 does not fit"},
		{"no version", edit(`"version":0,`, ``), "s.jsonl:1: no version"},
		{"negative version", edit(`"version":0`, `"version":-1`), "s.jsonl:1: version -1: must be 0"},
		{"huge version", edit(`"version":0`, `"version":99999999`), "s.jsonl:1: version 99999999: must be 0"},
		{"twin of a patch", edit(`"version":0`, `"version":2,"twin":true`), "s.jsonl:1: version 2 is marked as a twin"},
		{"no benchmark", edit(`"b"`, `""`), "s.jsonl:1: no benchmark"},
		{"no metric", edit(`"wall"`, `""`), "s.jsonl:1: no metric"},
		{"no unit", edit(`"unit":"s",`, ``), "s.jsonl:1: no unit"},
		{"negative position", edit(`"value"`, `"position":-1,"value"`), "s.jsonl:1: position -1"},
		{"twice", good + "\n\n" + good, "s.jsonl:3: wall of b stands in line 1 already for round 1 of version 0"},
		{"other unit", good + "\n" + strings.Replace(other, `"s"`, `"ms"`, 1), `s.jsonl:2: unit "ms": wall of b has unit "s" in line 1`},
		{"endless line", good + "\n" + strings.Repeat(" ", maxLine+1), "s.jsonl:2: longer than 1024 KiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Read("s.jsonl", strings.NewReader(tt.text))
			if tt.want == "" {
				if err != nil || len(list) == 0 && tt.text != "" {
					t.Errorf("%d samples, error %v", len(list), err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

// Whatever is read can be written and read again.
func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	if err := Write(&buf, recorded); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	for _, s := range []string{"", "{}", "[]", "null", `{"round":1,"version":0,"benchmark":"b","metric":"m","unit":"s","value":NaN}`, `{"round":1e400}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Read("a", bytes.NewReader(text))
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := Write(&buf, list); err != nil {
			t.Fatal(err)
		}
		back, err := Read("b", &buf)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(list, back); d != "" {
			t.Errorf("(-first +again):\n%s", d)
		}
	})
}
