package parse

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
)

var (
	hyperfineName = late.Regexp(`^\s*Benchmark #?\d+: (.*)$`)
	// hyperfineTime is the time of several runs, or of one (abs).
	hyperfineTime = late.Regexp(`^\s*Time \((?:mean|abs)[^)]*\):\s+(\S+) (\S+)(.*)$`)
	hyperfineCPU  = late.Regexp(`\[User: (\S+) (\S+), System: (\S+) (\S+)\]`)
)

// hyperfineCSV is how its table begins.
const hyperfineCSV = "command,mean,stddev,median,user,system,min,max"

// readHyperfine reads what hyperfine prints or exports. Exports have the median,
// which is taken; its text has the mean alone.
func readHyperfine(out []byte) ([]Result, error) {
	if doc, err := node.In(out, "results"); err != nil {
		return nil, err
	} else if doc != nil {
		return hyperfineJSON(doc)
	}
	text := lines(out)
	if i := slices.IndexFunc(text, func(l string) bool { return strings.HasPrefix(l, hyperfineCSV) }); i >= 0 {
		return hyperfineTable(text[i:], i)
	}
	var list []Result
	name := ""
	for i, line := range text {
		if m := hyperfineName().FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		m := hyperfineTime().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := Result{Name: name, Line: i + 1}
		figures := [][3]string{{wall, m[1], m[2]}}
		if c := hyperfineCPU().FindStringSubmatch(m[3]); c != nil {
			figures = append(figures, [3]string{user, c[1], c[2]}, [3]string{sys, c[3], c[4]})
		}
		for _, f := range figures {
			v, err := value(f[0], f[1], f[2])
			if err != nil {
				return nil, node.At(i+1, "%s: %w", shown(name), err)
			}
			r.Values = append(r.Values, v)
		}
		list = append(list, r)
	}
	return list, nil
}

func hyperfineJSON(doc *node.Node) ([]Result, error) {
	var list []Result
	for _, n := range doc.Get("results").Items {
		r := Result{Name: n.Get("command").Str(), Line: n.Line}
		for _, f := range []struct {
			metric string
			value  *node.Node
		}{{wall, n.Get("median").Or(n.Get("mean"))}, {user, n.Get("user")}, {sys, n.Get("system")}} {
			if f.value == nil {
				continue
			}
			v, err := figure(f.value, f.metric, bench.Second)
			if err != nil {
				return nil, err
			}
			r.Values = append(r.Values, v)
		}
		list = append(list, r)
	}
	return list, nil
}

// hyperfineTable reads the CSV that starts in the first of some lines; skipped
// are those before it.
func hyperfineTable(text []string, skipped int) ([]Result, error) {
	rd := csv.NewReader(strings.NewReader(strings.Join(text, "\n")))
	header, err := rd.Read()
	if err != nil {
		return nil, node.At(skipped+1, "the table cannot be read: %w", err)
	}
	var list []Result
	for {
		row, err := rd.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			var bad *csv.ParseError
			if errors.As(err, &bad) {
				return nil, node.At(skipped+bad.Line, "the table cannot be read: %w", bad.Err)
			}
			return nil, err
		}
		line, _ := rd.FieldPos(0)
		r := Result{Name: row[0], Line: skipped + line}
		for _, f := range [][2]string{{wall, "median"}, {user, "user"}, {sys, "system"}} {
			v, err := value(f[0], row[slices.Index(header, f[1])], bench.Second)
			if err != nil {
				return nil, node.At(r.Line, "%s: %w", shown(r.Name), err)
			}
			r.Values = append(r.Values, v)
		}
		list = append(list, r)
	}
}
