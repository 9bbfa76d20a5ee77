package parse

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bench/sample/parse/node"
	"patchbench/bench/sample/parse/unit"
)

// newRegex gives the parser for an expression of a suite, in the syntax of Go
// (RE2): every match is a result, ^ and $ match at lines. Its groups:
//
//	value         the figure; value_ms, value_MiB, ... has that unit
//	unit          its unit, where it is printed
//	name          of the result
//	metric        what is measured, where it is printed
//
// Matches of one name are figures of one result if they differ in metric.
func newRegex(text string) (*Parser, error) {
	re, err := regexp.Compile("(?m)" + text)
	if err != nil {
		return nil, fmt.Errorf("regex: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	figure, fixed := -1, ""
	group := map[string]int{}
	for i, name := range re.SubexpNames() {
		switch kind, u, has := strings.Cut(name, "_"); {
		case name == "":
		case group[name] > 0:
			return nil, fmt.Errorf("regex: two groups %s", name)
		case kind == "value" && figure >= 0:
			return nil, errors.New("regex: two groups for the figure: give one")
		case kind == "value":
			figure = i
			if has {
				fixed = u
			}
		case name != "unit" && name != "name" && name != "metric":
			return nil, fmt.Errorf("regex: unknown group %q: name, metric, value and unit are read", name)
		}
		group[name] = i
	}
	switch {
	case figure < 0:
		return nil, errors.New("regex: no group for the figure: write (?P<value>...)")
	case fixed != "" && group["unit"] > 0:
		return nil, errors.New("regex: the unit is named in value_" + fixed + " and in a group: give one")
	case re.MatchString(""):
		return nil, errors.New("regex: it matches where there is nothing")
	}
	return &Parser{Main: "value", MainUnit: bench.Count, read: func(out []byte) ([]Result, error) {
		return regexRun(re, figure, fixed, group, out)
	}}, nil
}

func regexRun(re *regexp.Regexp, figure int, fixed string, group map[string]int, out []byte) ([]Result, error) {
	var list []Result
	line, to := 1, 0
	for _, m := range re.FindAllSubmatchIndex(out, maxResults+1) {
		word := func(i int) string {
			if i == 0 || m[2*i] < 0 {
				return ""
			}
			return string(out[m[2*i]:m[2*i+1]])
		}
		place := max(m[2*figure], m[0])
		if place < to {
			place = to
		}
		line += strings.Count(string(out[to:place]), "\n")
		to = place
		r := Result{Name: word(group["name"]), Line: line}
		u := fixed
		if u == "" {
			u = word(group["unit"])
		}
		metric := word(group["metric"])
		if metric == "" {
			metric = metricOf(u)
		}
		v, err := value(metric, word(figure), u)
		if err != nil {
			return nil, node.At(line, "%s: %w", shown(r.Name), err)
		}
		r.Values = []Value{v}
		list = append(list, r)
	}
	return unnamed(joined(list, group["metric"] > 0)), nil
}

// joined merges figures of one name if the output says what each measures.
func joined(list []Result, named bool) []Result {
	if !named {
		return list
	}
	return merge(list)
}

// unnamed gives results that have no name one: the only one is the output's.
func unnamed(list []Result) []Result {
	for i := range list {
		if list[i].Name == "" {
			list[i].Name = "result"
		}
	}
	return list
}

// metricOf is what a figure is called of which only the unit is known.
func metricOf(u string) string {
	switch base, _ := unit.Base(u); {
	case base == bench.Second:
		return wall
	case strings.HasSuffix(base, "/s"):
		return throughput
	}
	return "value"
}

// step is one part of a path.
type step struct {
	key   string
	index int // of a list, negative from its end; with key "" and all false
	all   bool
}

// newJSON gives the parser for a path of a suite: the part of JSONPath (RFC 9535)
// that names members and items.
//
//	json:$.results[*].mean name=command unit=s
//	json:$.phases.*.seconds unit=s
//
// $ is the document; .key and ['key'] a member, [0] and [-1] an item, [*] and .*
// all of them. Behind the path: name= and unit-key= and metric-key= are members
// beside the figure, unit= and metric= are the same for all. Without name= a result
// is called by the keys and numbers that the stars stood for.
func newJSON(spec string) (*Parser, error) {
	words := strings.Fields(spec)
	if len(words) == 0 || !strings.HasPrefix(words[0], "$") {
		return nil, errors.New(`json: the path starts with $: write "json:$.results[*].mean name=command unit=s"`)
	}
	var path []step
	left := words[0][1:]
	// Keys in quotes may hold blanks.
	for strings.Count(left, "'")%2 == 1 && len(words) > 1 {
		left += " " + words[1]
		words = slices.Delete(words, 1, 2)
	}
	for left != "" {
		s, rest, err := pathStep(left)
		if err != nil {
			return nil, err
		}
		path, left = append(path, s), rest
	}
	options := map[string]string{}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		if !ok || v == "" || !slices.Contains([]string{"name", "unit", "unit-key", "metric", "metric-key"}, k) {
			return nil, fmt.Errorf("json: %q is none of name=KEY, unit=UNIT, unit-key=KEY, metric=NAME, metric-key=KEY", w)
		}
		options[k] = v
	}
	main := options["metric"]
	if main == "" {
		main = metricOf(options["unit"])
	}
	base, _ := unit.Base(options["unit"])
	return &Parser{Main: main, MainUnit: base, read: func(out []byte) ([]Result, error) {
		docs, err := node.Documents(out, func(*node.Node) bool { return true })
		if err != nil {
			return nil, err
		}
		var list []Result
		for _, d := range docs {
			if list, err = pathRun(d, nil, path, nil, options, list); err != nil {
				return nil, err
			}
		}
		return unnamed(joined(list, options["metric-key"] != "")), nil
	}}, nil
}

func pathStep(s string) (step, string, error) {
	wrong := fmt.Errorf("json: %s cannot be read: a path is made of .key, ['key'], [0] and [*]", first(s))
	switch {
	case strings.HasPrefix(s, ".*"):
		return step{all: true}, s[2:], nil
	case strings.HasPrefix(s, "[*]"):
		return step{all: true}, s[3:], nil
	case strings.HasPrefix(s, "['"):
		key, rest, ok := strings.Cut(s[2:], "']")
		if !ok || key == "" {
			return step{}, "", wrong
		}
		return step{key: key}, rest, nil
	case strings.HasPrefix(s, "["):
		digits, rest, ok := strings.Cut(s[1:], "]")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil {
			return step{}, "", wrong
		}
		return step{index: n}, rest, nil
	case strings.HasPrefix(s, "."):
		end := strings.IndexAny(s[1:], ".[")
		if end < 0 {
			end = len(s) - 1
		}
		if end == 0 {
			return step{}, "", wrong
		}
		return step{key: s[1 : 1+end]}, s[1+end:], nil
	}
	return step{}, "", wrong
}

// pathRun follows a path from n, whose parent is given, and adds what it leads to.
func pathRun(n, parent *node.Node, path []step, stars []string, options map[string]string, list []Result) ([]Result, error) {
	if len(list) > maxResults {
		return list, nil
	}
	if len(path) == 0 {
		r, err := pathResult(n, parent, stars, options)
		return append(list, r), err
	}
	s, path := path[0], path[1:]
	var err error
	follow := func(to *node.Node, star ...string) {
		if to != nil && err == nil {
			list, err = pathRun(to, n, path, append(stars[:len(stars):len(stars)], star...), options, list)
		}
	}
	switch {
	case s.all:
		for i, to := range n.Items {
			follow(to, strconv.Itoa(i))
		}
		for _, m := range n.Members {
			follow(m.Value, m.Key)
		}
	case s.key != "":
		follow(n.Get(s.key))
	default:
		i := s.index
		if i < 0 {
			i += len(n.Items)
		}
		if i >= 0 && i < len(n.Items) {
			follow(n.Items[i])
		}
	}
	return list, err
}

func pathResult(n, parent *node.Node, stars []string, options map[string]string) (Result, error) {
	r := Result{Line: n.Line, Name: strings.Join(stars, "/")}
	beside := func(option string) (string, error) {
		key := options[option]
		if key == "" {
			return "", nil
		}
		v := parent.Get(key)
		if v == nil || v.Kind != node.Text && v.Kind != node.Num {
			return "", node.At(n.Line, "no member %q beside the figure, as %s=%s asks for", key, option, key)
		}
		return v.Text, nil
	}
	name, err := beside("name")
	if err != nil {
		return r, err
	}
	if name != "" {
		r.Name = name
	}
	u, err := beside("unit-key")
	if err != nil {
		return r, err
	}
	metric, err := beside("metric-key")
	if err != nil {
		return r, err
	}
	figure := strings.TrimSpace(n.Text)
	if n.Kind == node.Text && u == "" && options["unit"] == "" {
		// "12.5 ms"
		if f, rest, ok := strings.Cut(figure, " "); ok {
			figure, u = f, strings.TrimSpace(rest)
		}
	}
	if n.Kind != node.Num && n.Kind != node.Text {
		return r, node.At(n.Line, "%s stands where a figure should", n.Kind)
	}
	if u == "" {
		u = options["unit"]
	}
	if metric == "" {
		metric = options["metric"]
	}
	if metric == "" {
		metric = metricOf(u)
	}
	v, err := value(metric, figure, u)
	if err != nil {
		return r, node.At(n.Line, "%s: %w", shown(r.Name), err)
	}
	r.Values = []Value{v}
	return r, nil
}
