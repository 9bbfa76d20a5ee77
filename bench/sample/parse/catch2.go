package parse

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
)

var (
	catchHeader = late.Regexp(`^benchmark name\s+samples\s+iterations\s+(.*)$`)
	// catchFirst is the line with a benchmark's name, or the end of it: samples,
	// iterations, and one duration.
	catchFirst = late.Regexp(`^(.*?)\s+(\d+)\s+(\d+)\s+(\S+) (\S+)\s*$`)
	catchThree = late.Regexp(`^\s+(\S+) (\S+)\s+(\S+) (\S+)\s+(\S+) (\S+)\s*$`)
)

// readCatch2 reads the benchmarks of Catch2 from its text or XML.
func readCatch2(out []byte) ([]Result, error) {
	if i := bytes.Index(out, []byte("<Catch")); i >= 0 {
		return catchXML(out, i)
	}
	var list []Result
	var pending []string // a name is wrapped to its column
	in, alone, open := false, false, false
	for i, line := range lines(out) {
		if m := catchHeader().FindStringSubmatch(line); m != nil {
			// Without analysis the mean stands on the first line, the only one.
			in, alone, open, pending = true, strings.TrimSpace(m[1]) == "mean", false, nil
			continue
		}
		switch {
		case !in:
			continue
		case ruler(line, '='), ruler(line, '.'):
			in = false
			continue
		case ruler(line, '-'):
			pending = nil
			continue
		case strings.TrimSpace(line) == "":
			if open {
				return nil, node.At(i+1, "%s has no mean", shown(list[len(list)-1].Name))
			}
			pending = nil
			continue
		}
		if open {
			m := catchThree().FindStringSubmatch(line)
			if m == nil {
				return nil, node.At(i+1, "%s: want mean, low mean and high mean, is %s", shown(list[len(list)-1].Name), first(strings.TrimSpace(line)))
			}
			v, err := value(wall, m[1], m[2])
			if err != nil {
				return nil, node.At(i+1, "%s: %w", shown(list[len(list)-1].Name), err)
			}
			r := &list[len(list)-1]
			r.Values, open = []Value{v}, false
			continue
		}
		m := catchFirst().FindStringSubmatch(line)
		if m == nil {
			if !strings.HasPrefix(line, " ") {
				pending = append(pending, strings.TrimSpace(line))
			}
			continue
		}
		r := Result{Name: strings.Join(append(pending, strings.TrimSpace(m[1])), " "), Line: i + 1}
		pending = nil
		if alone {
			v, err := value(wall, m[4], m[5])
			if err != nil {
				return nil, node.At(i+1, "%s: %w", shown(r.Name), err)
			}
			r.Values = []Value{v}
		}
		open = !alone
		list = append(list, r)
	}
	if open {
		r := list[len(list)-1]
		return nil, node.At(r.Line, "%s has no mean: the output is cut off", shown(r.Name))
	}
	return list, nil
}

// catchXML reads the XML that begins at a place.
func catchXML(out []byte, from int) ([]Result, error) {
	before := node.LineAt(out, from) - 1
	dec := xml.NewDecoder(bytes.NewReader(out[from:]))
	type found struct {
		Result
		test string
	}
	var all []found
	count := map[string]int{}
	var tests []string
	line := func() int { l, _ := dec.InputPos(); return before + l }
	inside := -1
	for depth := 0; ; {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, node.At(line(), "the XML cannot be read: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			switch t.Name.Local {
			case "TestCase":
				tests = append(tests, attr(t, "name"))
			case "BenchmarkResults":
				test := ""
				if len(tests) > 0 {
					test = tests[len(tests)-1]
				}
				name := attr(t, "name")
				count[name]++
				inside = len(all)
				all = append(all, found{Result{Name: name, Line: line()}, test})
			case "failed":
				if inside >= 0 {
					return nil, node.At(line(), "%s failed: %s", shown(all[inside].Name), first(attr(t, "message")))
				}
			case "mean":
				if inside >= 0 {
					v, err := value(wall, attr(t, "value"), "ns")
					if err != nil {
						return nil, node.At(line(), "%s: %w", shown(all[inside].Name), err)
					}
					all[inside].Values = append(all[inside].Values, v)
				}
			}
		case xml.EndElement:
			depth--
			switch t.Name.Local {
			case "BenchmarkResults":
				inside = -1
			case "TestCase":
				tests = tests[:max(0, len(tests)-1)]
			}
		}
		if _, ok := t.(xml.EndElement); ok && depth == 0 {
			break // what follows is no part of the document
		}
	}
	var list []Result
	for _, f := range all {
		// Two test cases may have benchmarks of one name.
		if count[f.Name] > 1 && f.test != "" {
			f.Name = f.test + "/" + f.Name
		}
		list = append(list, f.Result)
	}
	return list, nil
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
