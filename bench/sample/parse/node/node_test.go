package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (n *Node) show() string {
	switch n.Kind {
	case List, Object:
		var parts []string
		for _, i := range n.Items {
			parts = append(parts, i.show())
		}
		for _, m := range n.Members {
			parts = append(parts, m.Key+":"+m.Value.show())
		}
		return fmt.Sprintf("%d{%s}", n.Line, strings.Join(parts, " "))
	}
	return fmt.Sprintf("%d %s %q", n.Line, n.Kind, n.Text)
}

func TestDocuments(t *testing.T) {
	tests := []struct{ name, out, want string }{
		{"none", "text\n", ""},
		{"lines of values", "{\"a\":\n1.50}\n\n [\n\"x\", true,\nnull, {}]", "1{a:2 a number \"1.50\"}\n4{5 text \"x\" 5 a truth value \"true\" 6 null \"\" 6{}}"},
		{"text around", "a {\"b\": 1}\n{\"a\": 1} done\n[info] x\n{}", "2{a:2 a number \"1\"}\n4{}"},
		{"several on a line", "{} {\"a\":2}[3]\n", "1{}\n1{a:1 a number \"2\"}\n1{1 a number \"3\"}"},
		{"only text like JSON", "[info] x\n", "standard output:1: the JSON cannot be read: invalid character 'i' looking for beginning of value"},
		{"comma missing", "{\"a\": 1\n\"b\": 2}", "standard output:2: the JSON cannot be read: invalid character '\"' after object key:value pair"},
		{"cut off", "x\n{\"a\": [1,\n", "standard output:2: the JSON is cut off"},
		{"infinite", "{\"a\": 1,\n\"b\": -inf}", "standard output:2: -inf is no measurement: it must be finite and not negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Documents([]byte(tt.out), func(*Node) bool { return true })
			var got []string
			for _, n := range list {
				got = append(got, n.show())
			}
			if err != nil {
				got = append(got, err.Error())
			}
			if d := cmp.Diff(tt.want, strings.Join(got, "\n")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What is not there is nil all the way down.
func TestAbsent(t *testing.T) {
	n, err := In([]byte(`{"a": {"b": null}}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Get("x").Get("y").Or(n.Get("a").Get("b")).Or(n); got != n {
		t.Errorf("what stands for an absent and a null value is %v", got)
	}
	if got := n.Get("x").Str(); got != "" {
		t.Errorf("an absent text is %q", got)
	}
	if _, err := n.Number(); err == nil || err.Error() != "standard output:1: an object stands where a figure should" {
		t.Errorf("the figure of an object: %v", err)
	}
	if n, err := In([]byte("{}"), "a"); n != nil || err != nil {
		t.Errorf("In = %v, %v without the member", n, err)
	}
}
