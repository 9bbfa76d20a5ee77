// Package gobench reads the Go benchmark format (golang.org/design/14313-benchmark-format):
//
//	pkg: kit
//	BenchmarkEncode-8   100   12000 ns/op   512 B/op   3 allocs/op
//
// Read gives the results of one output, ReadFiles the samples of files that are
// to be compared. Values come in base units under the names of benchstat.
package gobench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"patchbench/bench"
)

// SecPerOp is the metric that every Go benchmark has.
const SecPerOp = "sec/op"

// Result is one line of results.
type Result struct {
	Name   string // without Benchmark and -GOMAXPROCS, told apart from other packages'
	Line   int
	Values []Value

	pkg     string
	version string // of the key `version:`
	printed string // the name as printed, without Benchmark
}

// Value is one figure in base units.
type Value struct {
	Metric, Unit string
	Value        float64
}

// Read reads an output, which name stands for in errors. A line that begins as a
// benchmark does and cannot be read, and a figure that is NaN, infinite or negative,
// is an error with file and line; other text is passed over.
func Read(name string, r io.Reader) ([]Result, error) {
	rows, err := read(name, r)
	if err != nil {
		return nil, err
	}
	nameRows(rows)
	return rows, nil
}

// read reads results whose rows are not named yet.
func read(name string, r io.Reader) ([]Result, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	var results []Result
	for rd := benchfmt.NewReader(bytes.NewReader(onlyBenchmarks(text)), name); ; {
		if !rd.Scan() {
			if err := rd.Err(); err != nil {
				return nil, err
			}
			return results, nil
		}
		switch rec := rd.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("%w: a benchmark's line reads BenchmarkName ITERATIONS VALUE UNIT ..., with a decimal point", rec)
		case *benchfmt.Result:
			g, err := goResultOf(rec)
			if err != nil {
				return nil, err
			}
			results = append(results, g)
		}
	}
}

// onlyBenchmarks empties all lines but those of benchmarks and keys, keeping
// their numbers: a program under test may print anything, of any length.
func onlyBenchmarks(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("Benchmark"))
		if ok {
			// Like the go command: Benchmarking is no benchmark.
			r, _ := utf8.DecodeRune(rest)
			ok = !unicode.IsLower(r)
		}
		if ok || bytes.HasPrefix(line, []byte("pkg:")) || bytes.HasPrefix(line, []byte("version:")) {
			out.Write(bytes.TrimSuffix(line, []byte("\n")))
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func goResultOf(rec *benchfmt.Result) (Result, error) {
	file, line := rec.Pos()
	g := Result{pkg: rec.GetConfig("pkg"), version: rec.GetConfig("version"), printed: rec.Name.String()}
	g.Line = line
	where := fmt.Sprintf("%s:%d: Benchmark%s", file, line, g.printed)
	if rec.Iters < 1 {
		return g, fmt.Errorf("%s: %d iterations: at least 1 is needed", where, rec.Iters)
	}
	seen := map[string]bool{}
	for _, v := range rec.Values {
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			return g, fmt.Errorf("%s: %v %s is no measurement: it must be finite and not negative", where, value, unit)
		}
		out := Value{unit, unit, value}
		switch unit {
		case "ns/op":
			out = Value{SecPerOp, bench.Second, value / 1e9}
		case SecPerOp:
			out.Unit = bench.Second
		case "MB/s":
			out = Value{"B/s", "B/s", value * 1e6}
		case "B/op":
			out.Unit = bench.Byte
		case "allocs/op":
			out.Unit = bench.Count
		}
		if math.IsInf(out.Value, 0) {
			return g, fmt.Errorf("%s: %v %s is too large", where, value, unit)
		}
		if seen[out.Metric] {
			return g, fmt.Errorf("%s: two values in %s", where, out.Metric)
		}
		seen[out.Metric] = true
		g.Values = append(g.Values, out)
	}
	return g, nil
}

// nameRows names the rows of one output: without -GOMAXPROCS, which stands behind
// every name or behind none (`-cpu 1,2` mixes them, and then it tells rows
// apart), and with the package where two have benchmarks of one name.
func nameRows(rows []Result) {
	suffix := commonProcs(rows)
	pkgs := map[string]string{}
	shared := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		r.Name = strings.TrimSuffix(r.printed, suffix)
		if r.Name == "" {
			r.Name = "Benchmark"
		}
		if p, ok := pkgs[r.Name]; ok && p != r.pkg {
			shared[r.Name] = true
		}
		pkgs[r.Name] = r.pkg
	}
	for i := range rows {
		if r := &rows[i]; shared[r.Name] && r.pkg != "" {
			r.Name = r.pkg + "." + r.Name
		}
	}
}

// commonProcs is the -N that all names end in, "" if they do not agree.
func commonProcs(rows []Result) string {
	var common string
	for i, r := range rows {
		dash := strings.LastIndexByte(r.printed, '-')
		if dash < 0 {
			return ""
		}
		digits := r.printed[dash+1:]
		if digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
			return ""
		}
		if i > 0 && r.printed[dash:] != common {
			return ""
		}
		common = r.printed[dash:]
	}
	return common
}

// ReadFiles reads files in the Go benchmark format for a comparison: one file
// for each version, in order, or one file in which the key `version:` stands
// before the results of each version:
//
//	version: base
//	BenchmarkEncode-8   100   12000 ns/op   512 B/op   3 allocs/op
//	version: patched
//	BenchmarkEncode-8   100   11000 ns/op   512 B/op   3 allocs/op
//
// It returns the samples and the versions' names, which are the file names or
// the key's values in order of appearance. The round is how often the benchmark
// has stood in its version so far, from 1, so -count=10 gives ten rounds; lines
// of one name need not stand together. Units are scaled to base units; custom
// units stay as they stand. Errors name file and line.
func ReadFiles(files ...string) ([]bench.Sample, []string, error) {
	var readers []namedReader
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		readers = append(readers, namedReader{name, f})
	}
	return goBenchSamples(readers)
}

type namedReader struct {
	name string
	io.Reader
}

func goBenchSamples(files []namedReader) ([]bench.Sample, []string, error) {
	var results []Result // all of them, with the version's name set
	var names []string
	number := map[string]int{}
	for _, f := range files {
		rows, err := Read(f.name, f)
		if err != nil {
			return nil, nil, err
		}
		if len(rows) == 0 {
			return nil, nil, fmt.Errorf("%s: no benchmark results in it: expected the output of go test -bench", f.name)
		}
		for _, r := range rows {
			if len(files) > 1 {
				r.version = f.name
			} else if r.version == "" {
				return nil, nil, fmt.Errorf("%s:%d: result without a version: give one file for each version, or put a line `version: NAME` before each version's results", f.name, r.Line)
			}
			if _, ok := number[r.version]; !ok {
				number[r.version] = len(names)
				names = append(names, r.version)
			}
			results = append(results, r)
		}
	}
	switch {
	case len(files) == 0:
		return nil, nil, errors.New("no file with benchmark results is given")
	case len(names) != max(2, len(files)) && len(files) > 1:
		return nil, nil, errors.New("one file is given twice: each version needs its own")
	case len(names) < 2:
		return nil, nil, fmt.Errorf("%s: only version %q: two are needed for a comparison", files[0].name, names[0])
	}

	type key struct {
		version int
		row     string
	}
	count := map[key]int{}
	var list []bench.Sample
	for _, r := range results {
		k := key{number[r.version], r.Name}
		count[k]++
		for _, v := range r.Values {
			list = append(list, bench.Sample{
				Round: count[k], Version: k.version, Benchmark: r.Name,
				Metric: v.Metric, Unit: v.Unit, Value: v.Value,
			})
		}
	}
	return list, names, nil
}
