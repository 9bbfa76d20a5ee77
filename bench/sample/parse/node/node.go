// Package node reads the JSON in the output of a program into values that know
// their line, so that what is wrong with a figure can be told with its place.
//
//	building kit ...                        text, passed over
//	{"runs": [                              a document, from line 2 on
//	  {"mean": NaN}]}                       an error in line 3
package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"patchbench/bench/late"
	"patchbench/bench/sample/parse/unit"
)

// maxDepth is how deep the JSON of a tool may be nested.
const maxDepth = 100

// At is an error in a line of a program's output.
func At(line int, format string, args ...any) error {
	return fmt.Errorf("standard output:%d: %w", line, fmt.Errorf(format, args...))
}

// LineAt is the line of a place in an output, from 1.
func LineAt(out []byte, offset int) int {
	return 1 + bytes.Count(out[:min(offset, len(out))], []byte("\n"))
}

// Kind says what a value is.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Bool
	Num
	Text
	List
	Object
)

// Node is a JSON value that knows its line.
type Node struct {
	Kind    Kind
	Line    int    // in the output, from 1
	Text    string // of a string, number or truth value
	Items   []*Node
	Members []Member
}

// Member is one of an object(), in the order of the text.
type Member struct {
	Key   string
	Value *Node
}

// Get is the member of an object(), nil if there is none.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Or is n, or another if it is not there.
func (n *Node) Or(other *Node) *Node {
	if n == nil || n.Kind == Null {
		return other
	}
	return n
}

// Str is the text of a value, "" if it is not there.
func (n *Node) Str() string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Number reads a figure, also one that a tool wrote as text.
func (n *Node) Number() (float64, error) {
	switch n.Kind {
	case Num, Text:
		v, err := unit.Number(strings.TrimSpace(n.Text))
		if err != nil {
			return 0, At(n.Line, "%w", err)
		}
		return v, nil
	}
	return 0, At(n.Line, "%s stands where a figure should", n.Kind)
}

// String names it in a message: "a list".
func (k Kind) String() string {
	return [...]string{"null", "a truth value", "a number", "text", "a list", "an object"}[k]
}

// reading is a JSON document that is being read from an output.
type reading struct {
	dec      *json.Decoder
	out      []byte
	base     int // where the document starts
	line, to int // line of the byte at to
}

func read(out []byte, base, line int) *reading {
	r := &reading{dec: json.NewDecoder(bytes.NewReader(out[base:])), out: out, base: base, line: line, to: base}
	r.dec.UseNumber()
	return r
}

// here is the line of the token read last.
func (r *reading) here() int {
	end := r.base + int(r.dec.InputOffset())
	r.line += bytes.Count(r.out[r.to:end], []byte("\n"))
	r.to = end
	return r.line
}

// end is the place behind the value read last.
func (r *reading) end() int { return r.base + int(r.dec.InputOffset()) }

func (r *reading) next(depth int) (*Node, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, r.fault(err)
	}
	return r.value(t, depth)
}

func (r *reading) value(t json.Token, depth int) (*Node, error) {
	n := &Node{Line: r.here()}
	if depth > maxDepth {
		return nil, At(n.Line, "JSON nested more than %d deep", maxDepth)
	}
	switch t := t.(type) {
	case nil:
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(t)
	case json.Number:
		n.Kind, n.Text = Num, string(t)
	case string:
		n.Kind, n.Text = Text, t
	case json.Delim:
		n.Kind = Object
		if t == '[' {
			n.Kind = List
		}
		for r.dec.More() {
			var key string
			if n.Kind == Object {
				k, err := r.dec.Token()
				if err != nil {
					return nil, r.fault(err)
				}
				key, _ = k.(string)
			}
			v, err := r.next(depth + 1)
			if err != nil {
				return nil, err
			}
			if n.Kind == Object {
				n.Members = append(n.Members, Member{key, v})
			} else {
				n.Items = append(n.Items, v)
			}
		}
		if _, err := r.dec.Token(); err != nil {
			return nil, r.fault(err)
		}
	}
	return n, nil
}

// notJSON are the words that programs print for figures that JSON does not have.
var notJSON = late.Regexp(`(?i)^[-+]?(?:nan|inf(?:inity)?)\b`)

// fault tells where a document cannot be read, and why.
func (r *reading) fault(err error) error {
	// The value at fault is the one behind the last that could be read.
	place := r.end()
	for place < len(r.out) && strings.IndexByte(" \t\r\n,:", r.out[place]) >= 0 {
		place++
	}
	line := LineAt(r.out, place)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		if w := notJSON().Find(r.out[place:min(len(r.out), place+12)]); w != nil {
			return At(line, "%s is no measurement: it must be finite and not negative", w)
		}
		return At(line, "the JSON cannot be read: %s", strings.TrimPrefix(syntax.Error(), "json: "))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return At(LineAt(r.out, len(bytes.TrimRight(r.out, "\n"))), "the JSON is cut off")
	}
	return At(line, "the JSON cannot be read: %w", err)
}

// starts are the places where a JSON value may begin: lines that begin with a
// brace or bracket, after blanks.
func starts(out []byte) []int {
	var list []int
	for i := 0; i < len(out); {
		end := len(out)
		if k := bytes.IndexByte(out[i:], '\n'); k >= 0 {
			end = i + k
		}
		for k := i; k < end; k++ {
			if c := out[k]; c == '{' || c == '[' {
				list = append(list, k)
				break
			} else if c != ' ' && c != '\t' {
				break
			}
		}
		i = end + 1
	}
	return list
}

// object is what no text but JSON begins with: "[info] ..." is none.
var object = late.Regexp(`^\{\s*"`)

// Documents reads the JSON values of an output, one after the other, each at the
// beginning of a line. What is none of them and can begin none is passed over: a
// program may print other text between.
func Documents(out []byte, want func(*Node) bool) ([]*Node, error) {
	var list []*Node
	var fault error
	to, counted, line := 0, 0, 1
	for _, place := range starts(out) {
		if place < to {
			continue
		}
		line += bytes.Count(out[counted:place], []byte("\n"))
		counted = place
		r := read(out, place, line)
		// Files printed one after the other may end without a new line.
		for place < len(out) && (out[place] == '{' || out[place] == '[') {
			n, err := r.next(0)
			// Also after a fault: what lies behind is looked at once only.
			to = max(to, r.end())
			if err != nil {
				if object().Match(out[place:]) {
					return nil, err
				}
				if fault == nil {
					fault = err
				}
				break
			}
			if want(n) {
				list = append(list, n)
			}
			for place = to; place < len(out) && (out[place] == ' ' || out[place] == '\t'); place++ {
			}
		}
	}
	if len(list) == 0 && fault != nil {
		return nil, fault
	}
	return list, nil
}

// In finds the document of a tool by a member of its object; nil without an
// error says that the output is no JSON of it. A document that names the member
// and cannot be read is an error.
func In(out []byte, key string) (*Node, error) {
	list, err := Documents(out, func(n *Node) bool { return n.Get(key) != nil })
	switch {
	case err != nil && bytes.Contains(out, fmt.Appendf(nil, "%q", key)):
		return nil, err
	case len(list) == 0:
		return nil, nil
	case len(list) > 1:
		return nil, At(list[1].Line, "a second document of results (first in line %d): run the tool once", list[0].Line)
	}
	return list[0], nil
}
