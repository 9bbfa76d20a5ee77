package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// FuzzRead checks that any text gives a fault or is read, and that the scanner
// knows the line of every key that the parser found.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"a = 1\n[b.c]\nd.e = 'x'\n[[f]]\ng = [1, {h = 2}, [3]]\n[[f]]\n[[f.i]]\n",
		"\ufeffa = \"\"\"\n\\\"]\"\"\"\"\"\r\n\"b c\".'d' = {e.f = 1, g = [\n]}\n",
		"[", "a = [[[[", "a = {", "a = \"\\", "'''", "[[a]]\na = ", "x=1_0\ny=1e5#z\n[ \"q\" . r ]",
		"\"\\e\" = 1\n'' = 2\n\"\" = 3", "a.b.c.d = 1\na.b.e = 2",
		strings.Repeat("a = [", 500), "a" + strings.Repeat(".b", 500) + "=1", "a=" + strings.Repeat("{b=", 500),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v struct {
			A any               `toml:"a"`
			B map[string]any    `toml:"b"`
			F []map[string]Size `toml:"f"`
		}
		doc, err := Read("f", []byte(text), &v)
		if err != nil {
			var faults Errors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error is a %T: %v", err, err)
			}
			for _, e := range faults {
				if e.Line < 0 || e.Line > strings.Count(text, "\n")+1 {
					t.Errorf("line %d is not in the text: %v", e.Line, e)
				}
			}
		}
		if doc == nil {
			return
		}
		var data map[string]any
		if _, err := toml.Decode(text, &data); err != nil {
			t.Fatal(err)
		}
		known(t, doc, nil, data)
	})
}

// known checks that the document has a line for everything in a value.
func known(t *testing.T, doc *Document, path []any, value any) {
	if _, ok := doc.lines[key(path)]; !ok && len(path) > 0 {
		t.Errorf("no line for %q", path)
	}
	switch v := value.(type) {
	case map[string]any:
		for k, e := range v {
			// The scanner leaves escapes that Go does not know as they stand.
			if !strings.ContainsFunc(k, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("\\\"'", r) }) {
				known(t, doc, at(path, k), e)
			}
		}
	case []map[string]any:
		for i, e := range v {
			known(t, doc, at(path, i), e)
		}
	case []any:
		for i, e := range slices.Clone(v) {
			known(t, doc, at(path, i), e)
		}
	}
}
