package pathspec

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		patterns, name string
		want           bool
	}{
		{"*.c", "x.c", true},
		{"*.c", "a/b/x.c", true},
		{"*.c", "x.ch", false},
		{"src", "src/a/x.c", true},
		{"src/", "src/a/x.c", true},
		{"src", "srcs/x.c", false},
		{"./src", "src/x", true},
		{"src/*.c", "src/x.c", true},
		{"src/*.c", "src/a/x.c", true},
		{"src/*.c", "doc/src/x.c", false},
		{"**/x.c", "x.c", true},
		{"**/x.c", "a/b/x.c", true},
		{"src/**/x.c", "src/a/x.c", true},
		{"x.[ch]", "x.h", true},
		{"x.[!ch]", "x.h", false},
		{"x.[a-d]", "x.c", true},
		{"x.?", "x.c", true},
		{"x.?", "x.", false},
		{`\*.c`, "*.c", true},
		{`\*.c`, "x.c", false},
		{"[", "[", true},
		{"*.c !src/*", "src/x.c", false},
		{"*.c !src/*", "lib/x.c", true},
		{"!doc", "src/x", true},
		{"!doc", "doc/x", false},
		{"", "x", true},
		{"a*a*a*a*a*a*a*a*a*a*a*b", strings.Repeat("a", 10_000), false},
	} {
		if got := Match(strings.Split(c.patterns, " "), c.name); got != c.want {
			t.Errorf("%q, %.50q: got %t, want %t", c.patterns, c.name, got, c.want)
		}
	}
}
