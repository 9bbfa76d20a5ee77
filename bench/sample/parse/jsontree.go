package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// maxDepth is how deep the JSON of a tool may be nested.
const maxDepth = 100

type kind int

const (
	isNull kind = iota
	isBool
	isNum
	isText
	isList
	isObject
)

// node is a JSON value that knows its line.
type node struct {
	kind    kind
	line    int
	text    string // of a string, number or truth value
	items   []*node
	members []member
}

type member struct {
	key   string
	value *node
}

// get is the member of an object, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// or is n, or another if it is not there.
func (n *node) or(other *node) *node {
	if n == nil || n.kind == isNull {
		return other
	}
	return n
}

// str is the text of a value, "" if it is not there.
func (n *node) str() string {
	if n == nil {
		return ""
	}
	return n.text
}

// number reads a figure, also one that a tool wrote as text.
func (n *node) number() (float64, error) {
	switch n.kind {
	case isNum, isText:
		v, err := number(strings.TrimSpace(n.text))
		if err != nil {
			return 0, at(n.line, "%w", err)
		}
		return v, nil
	}
	return 0, at(n.line, "%s stands where a figure should", n.kind)
}

func (n *node) value(metric, u string) (Value, error) {
	v, err := n.number()
	if err != nil {
		return Value{}, err
	}
	return scaled(metric, v, u), nil
}

func (k kind) String() string {
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

func (r *reading) next(depth int) (*node, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, r.fault(err)
	}
	return r.value(t, depth)
}

func (r *reading) value(t json.Token, depth int) (*node, error) {
	n := &node{line: r.here()}
	if depth > maxDepth {
		return nil, at(n.line, "JSON nested more than %d deep", maxDepth)
	}
	switch t := t.(type) {
	case nil:
	case bool:
		n.kind, n.text = isBool, strconv.FormatBool(t)
	case json.Number:
		n.kind, n.text = isNum, string(t)
	case string:
		n.kind, n.text = isText, t
	case json.Delim:
		n.kind = isObject
		if t == '[' {
			n.kind = isList
		}
		for r.dec.More() {
			var key string
			if n.kind == isObject {
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
			if n.kind == isObject {
				n.members = append(n.members, member{key, v})
			} else {
				n.items = append(n.items, v)
			}
		}
		if _, err := r.dec.Token(); err != nil {
			return nil, r.fault(err)
		}
	}
	return n, nil
}

// notJSON are the words that programs print for figures that JSON does not have.
var notJSON = regexp.MustCompile(`(?i)^[-+]?(?:nan|inf(?:inity)?)\b`)

// fault tells where a document cannot be read, and why.
func (r *reading) fault(err error) error {
	// The value at fault is the one behind the last that could be read.
	place := r.end()
	for place < len(r.out) && strings.IndexByte(" \t\r\n,:", r.out[place]) >= 0 {
		place++
	}
	line := lineAt(r.out, place)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		if w := notJSON.Find(r.out[place:min(len(r.out), place+12)]); w != nil {
			return at(line, "%s is no measurement: it must be finite and not negative", w)
		}
		return at(line, "the JSON cannot be read: %s", strings.TrimPrefix(syntax.Error(), "json: "))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at(lineAt(r.out, len(bytes.TrimRight(r.out, "\n"))), "the JSON is cut off")
	}
	return at(line, "the JSON cannot be read: %w", err)
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
var object = regexp.MustCompile(`^\{\s*"`)

// documents reads the JSON values of an output, one after the other, each at the
// beginning of a line. What is none of them and can begin none is passed over: a
// program may print other text between.
func documents(out []byte, want func(*node) bool) ([]*node, error) {
	var list []*node
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
				if object.Match(out[place:]) {
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

// jsonIn finds the document of a tool by a member of its object; nil without an
// error says that the output is no JSON of it. A document that names the member
// and cannot be read is an error.
func jsonIn(out []byte, key string) (*node, error) {
	list, err := documents(out, func(n *node) bool { return n.get(key) != nil })
	switch {
	case err != nil && bytes.Contains(out, fmt.Appendf(nil, "%q", key)):
		return nil, err
	case len(list) == 0:
		return nil, nil
	case len(list) > 1:
		return nil, at(list[1].line, "a second document of results (first in line %d): run the tool once", list[0].line)
	}
	return list[0], nil
}
