// Package parse reads the results that benchmark programs print: bytes of
// output go in, named rows with figures in base units come out, or an error with
// the line at fault. It runs nothing and keeps nothing.
//
//	text (standard output) --> Parser.Parse --> []Result (bench/sample)
//
// A suite names the format, and for the two free ones what to take:
//
//	parse = "gobench"             # go test -bench
//	parse = "google-benchmark"    # its console, or --benchmark_format=json
//	parse = "hyperfine"           # its text, or --export-json or --export-csv on /dev/stdout
//	parse = "criterion"           # text; cargo-criterion's JSON lines; benchmark.json and estimates.json one after the other
//	parse = "pytest-benchmark"    # its table, or --benchmark-json=/dev/stdout
//	parse = "jmh"                 # its table, or -rf json -rff /dev/stdout
//	parse = "catch2"              # text, or -r xml
//	parse = "json:$.runs[*].mean name=command unit=s"
//	parse = "regex:^(?P<name>\\w+): (?P<value>\\S+) (?P<unit>\\w+)$"
//
// Text around the results is passed over. What looks like a result and is none is
// never passed over: a figure that is NaN, infinite or negative, has a decimal
// comma, or is too large ends the reading, since a comparison without it would
// be one of something else.
//
// Time of one operation is called wall, of its processor cpu, and what is done in
// a second throughput, whatever word the tool has; figures that only one tool
// knows keep its name. gobench keeps the names of benchstat (sec/op, B/op).
package parse

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"patchbench/bench"
	"patchbench/bench/sample/parse/gobench"
	"patchbench/bench/sample/parse/node"
	"patchbench/bench/sample/parse/unit"
	"patchbench/config"
)

// ErrNone is the error for an output without a result.
var ErrNone = errors.New("suite produced no results")

// Bounds on what one run may yield: more is a mistake or ill will.
const (
	maxResults = 5000
	maxName    = 1000 // bytes
)

// Result is one benchmark of an output.
type Result struct {
	Name string
	// Line is where it stands in the output, from 1.
	Line   int
	Values []Value
}

// Value is one figure of a Result. Which direction is better follows from its
// unit: bench.MetricFor knows.
type Value struct {
	Metric string
	Unit   string // a base unit ("s", "B", "1", "B/s", "1/s"), or the tool's own
	Value  float64
}

// Names of the metrics that several tools have.
const (
	wall       = "wall"
	cpu        = "cpu"
	user       = "user"
	sys        = "sys"
	throughput = "throughput"
)

// Parser reads one format.
type Parser struct {
	// Main is the metric that stands for a result as a whole, and its unit.
	Main, MainUnit string
	read           reader
}

// reader finds the results of an output in order. Checks that are the same for
// all formats are not its part.
type reader func(out []byte) ([]Result, error)

var formats = map[string]Parser{
	"gobench":          {gobench.SecPerOp, bench.Second, readGoBench},
	"google-benchmark": {wall, bench.Second, readGoogle},
	"hyperfine":        {wall, bench.Second, readHyperfine},
	"criterion":        {wall, bench.Second, readCriterion},
	"pytest-benchmark": {wall, bench.Second, readPytest},
	"jmh":              {wall, bench.Second, readJMH},
	"catch2":           {wall, bench.Second, readCatch2},
}

// Names are the formats that a suite may ask for, in order; those that end in a
// colon need more behind it.
func Names() []string {
	return []string{"catch2", "criterion", "gobench", "google-benchmark", "hyperfine", "jmh", "pytest-benchmark", "json:", "regex:"}
}

// New gives the parser that a suite's `parse` asks for. The error says what is
// wrong with it and what there is.
func New(spec string) (*Parser, error) {
	name, rest, free := strings.Cut(spec, ":")
	switch {
	case free && name == "json":
		return newJSON(rest)
	case free && name == "regex":
		return newRegex(rest)
	}
	if p, ok := formats[spec]; ok {
		return &p, nil
	}
	switch name {
	case "json":
		return nil, errors.New(`"json" needs a path to the figures: write "json:$.results[*].mean name=command unit=s"`)
	case "regex":
		return nil, errors.New(`"regex" needs an expression with a group for the figure: write "regex:(?P<name>\\w+): (?P<value>\\S+) ms"`)
	}
	return nil, fmt.Errorf("unknown %q (%s)", spec, config.Hint(spec, Names()))
}

// Parse reads what one run of a program printed: at least one result, none twice,
// every figure finite and not negative. Errors name the line of standard output;
// ErrNone is one of them.
func (p *Parser) Parse(out []byte) ([]Result, error) {
	list, err := p.read(bytes.ToValidUTF8(out, []byte("\uFFFD")))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNone
	}
	seen := map[string]int{}
	for i, r := range list {
		if i == maxResults {
			return nil, node.At(r.Line, "more than %d results: choose fewer benchmarks", maxResults)
		}
		if len(r.Name) > maxName {
			return nil, node.At(r.Line, "a name of %d bytes, at most %d are read: %.40q...", len(r.Name), maxName, r.Name)
		}
		if l := seen[r.Name]; l != 0 {
			return nil, node.At(r.Line, "%s printed twice (first in line %d): run each benchmark once", shown(r.Name), l)
		}
		seen[r.Name] = r.Line
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r Result) check() error {
	if len(r.Values) == 0 {
		return node.At(r.Line, "%s has no figure", shown(r.Name))
	}
	for i, v := range r.Values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0 {
			return node.At(r.Line, "%s: %v %s is no measurement: it must be finite and not negative", shown(r.Name), v.Value, v.Unit)
		}
		if slices.ContainsFunc(r.Values[:i], func(w Value) bool { return w.Metric == v.Metric }) {
			return node.At(r.Line, "%s: two values in %s", shown(r.Name), v.Metric)
		}
	}
	return nil
}

// shown puts a name into a message: as it stands, in quotes if it could be
// misread or steer a terminal.
func shown(name string) string {
	plain := func(r rune) bool { return r >= '!' && r <= '~' && r != '"' }
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	if len(name) > 80 {
		name = string(bytes.ToValidUTF8([]byte(name[:80]), nil)) + "..."
	}
	return fmt.Sprintf("%+q", name)
}

// lines splits an output. Carriage returns at the ends, and what one in the middle
// has overwritten on a terminal, are dropped.
func lines(out []byte) []string {
	list := strings.Split(string(out), "\n")
	for i, l := range list {
		l = strings.TrimRight(l, "\r")
		list[i] = l[strings.LastIndexByte(l, '\r')+1:]
	}
	return list
}

// columns splits a line where two or more blanks stand together.
func columns(line string) []string {
	var list []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return list
		}
		end := strings.Index(line, "  ")
		if tab := strings.IndexByte(line, '\t'); tab >= 0 && (end < 0 || tab < end) {
			end = tab
		}
		if end < 0 {
			return append(list, strings.TrimRight(line, " "))
		}
		list = append(list, line[:end])
		line = line[end:]
	}
}

// ruler says that a line is drawn with one character: "-----".
func ruler(line string, with byte) bool {
	line = strings.TrimRight(line, " ")
	return len(line) >= 3 && strings.Trim(line, string(with)) == ""
}

// readGoBench reads what `go test -bench` prints.
func readGoBench(out []byte) ([]Result, error) {
	rows, err := gobench.Read("standard output", bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	var list []Result
	for _, r := range rows {
		x := Result{Name: r.Name, Line: r.Line}
		for _, v := range r.Values {
			x.Values = append(x.Values, Value(v))
		}
		list = append(list, x)
	}
	return list, nil
}

// value makes a Value of a printed figure and its unit.
func value(metric, figure, u string) (Value, error) {
	v, err := unit.Number(figure)
	if err != nil {
		return Value{}, err
	}
	return scaled(metric, v, u), nil
}

func scaled(metric string, v float64, u string) Value {
	base, factor := unit.Base(u)
	return Value{metric, base, v * factor}
}

// figure makes a Value of a figure in JSON.
func figure(n *node.Node, metric, u string) (Value, error) {
	v, err := n.Number()
	if err != nil {
		return Value{}, err
	}
	return scaled(metric, v, u), nil
}

// merge joins results of one name, which a tool printed once for each figure.
func merge(list []Result) []Result {
	var out []Result
	place := map[string]int{}
	for _, r := range list {
		i, ok := place[r.Name]
		if !ok {
			place[r.Name] = len(out)
			out = append(out, r)
			continue
		}
		out[i].Values = append(out[i].Values, r.Values...)
	}
	return out
}

// first is a line of text of which a message needs only the beginning.
func first(s string) string {
	if utf8.RuneCountInString(s) > 60 {
		s = string([]rune(s)[:60]) + "..."
	}
	return fmt.Sprintf("%+q", s)
}
