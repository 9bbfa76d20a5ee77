package suite

import (
	"maps"
	"slices"

	"patchbench/bench/late"
)

var (
	// placeholder is {word} or {{word}}; what stands before it decides whether
	// it is the shell's ${word}.
	placeholder = late.Regexp(`\$?\{\{?[A-Za-z_][A-Za-z0-9_-]*\}\}?`)
	wordPattern = late.Regexp(`^[A-Za-z_][A-Za-z0-9_-]*$`)
)

// split tells what a match of placeholder is: a parameter's name, or else the
// text that stands for it.
func split(match string) (name, text string) {
	switch {
	case match[0] == '$':
		return "", match
	case match[1] == '{' && len(match) > 4 && match[len(match)-2] == '}':
		return "", match[1 : len(match)-1]
	case match[1] == '{':
		return match[2 : len(match)-1], "" // {{word}: an opening brace before a placeholder
	case match[len(match)-2] == '}':
		return match[1 : len(match)-2], ""
	}
	return match[1 : len(match)-1], ""
}

// expand fills the parameters into a string.
func expand(s string, params map[string]string) string {
	return placeholder().ReplaceAllStringFunc(s, func(match string) string {
		name, text := split(match)
		if name == "" {
			return text
		}
		v, ok := params[name]
		if !ok {
			return match
		}
		switch {
		case match[1] == '{':
			return "{" + v
		case match[len(match)-2] == '}':
			return v + "}"
		}
		return v
	})
}

// names lists the parameters that a string asks for, each once.
func names(s string) []string {
	var found []string
	for _, match := range placeholder().FindAllString(s, -1) {
		if name, _ := split(match); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// combinations lists every choice of one value for each parameter: the first
// parameter by name varies slowest, values come in the order of the file.
// Without parameters there is one combination, nil.
func combinations(params map[string][]value) []map[string]string {
	all := []map[string]string{nil}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		var longer []map[string]string
		for _, before := range all {
			for _, v := range params[name] {
				c := maps.Clone(before)
				if c == nil {
					c = map[string]string{}
				}
				c[name] = string(v)
				longer = append(longer, c)
			}
		}
		all = longer
	}
	return all
}
