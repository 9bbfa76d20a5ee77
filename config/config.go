// Package config decodes TOML strictly, for every file that a user writes: the
// suite and the service's configuration.
//
// In go a file's name and text and a pointer to a struct; the struct comes out
// filled, or Errors that name every fault with its file and line and, for an
// unknown key, the key that was probably meant:
//
//	suite.toml:12: unknown key "benchmark.comand" (did you mean "command"?)
//	suite.toml:14: limits.memory: want a size such as "512MiB", is a boolean
//
// The text is parsed by BurntSushi/toml. The structs are filled here, because
// that package stops at the first fault and knows the line only of the last
// element of an array of tables. Nothing here reads files or knows what the keys
// mean.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// MaxBytes is the size of the largest text that is read.
const MaxBytes = 256 << 10

// Error is one fault in a file that a user wrote.
type Error struct {
	File string
	Line int // from 1; 0 if the fault lies at no line
	Text string
}

// Error gives FILE:LINE: TEXT, or FILE: TEXT without a line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Errors are all faults of a file, by line. It is never empty where an error is
// returned. A caller tells a user's fault from its own with errors.As, for
// Errors or for *Error.
type Errors []*Error

// Error gives one line for each fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults one by one.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// Join gives the faults of both ordered by line, or nil if there are none.
func (e Errors) Join(more Errors) error {
	all := slices.Concat(e, more)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// Read fills v, a pointer to a struct, from TOML text, and tells where each key
// stands, for faults that only the caller can see. The name is used in messages
// only. Every fault is reported, as Errors: bad syntax, unknown keys, values of
// another type. The Document is nil only if the text is no TOML.
//
// Keys match the `toml` tag of a field exactly. A time.Duration is a string with
// a unit ("90s"). A field of a type with UnmarshalTOML(any) error decodes
// itself; see also Size.
func Read(name string, text []byte, v any) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, Errors{{File: name, Text: fmt.Sprintf("%d bytes are too many: give at most %d", len(text), MaxBytes)}}
	}
	found, deep := lines(string(text))
	if deep > 0 {
		return nil, Errors{{File: name, Line: deep, Text: fmt.Sprintf("more than %d tables or lists in each other", maxDepth)}}
	}
	var data map[string]any
	if _, err := toml.Decode(string(text), &data); err != nil {
		fault := &Error{File: name, Text: err.Error()}
		var pe toml.ParseError
		if errors.As(err, &pe) {
			fault.Line, fault.Text = pe.Position.Line, pe.Message
			if hint := twice(string(text), fault.Line, v); hint != "" {
				fault.Text = hint
			} else {
				if pe.LastKey != "" {
					fault.Text += fmt.Sprintf(" (near key %q)", pe.LastKey)
				}
				fault.Text += advice(pe.Message)
			}
		}
		return nil, Errors{fault}
	}
	doc := &Document{name: name, lines: found, faulty: map[string]bool{}}
	d := decoder{doc: doc}
	d.top(data, v)
	return doc, d.errs.Join(nil)
}

// advice says what to do about a syntax error that people make often.
func advice(message string) string {
	for _, a := range []struct{ part, do string }{
		{`expected value but found "`, "put text in quotes, and write true and false in small letters"},
		{"expected '.' or '='", "write KEY = VALUE"},
		{"invalid escape in string", `write \\ for a backslash, or put the text in 'single quotes'`},
		{"invalid UTF-8 byte", "save the file as UTF-8"},
		{"control characters: '0x0d'", "end lines with a line feed"},
	} {
		if strings.Contains(message, a.part) {
			return ": " + a.do
		}
	}
	return ""
}

// Document says where the keys of a text stand.
//
// A path is made of table and key names (string) and of places in an array
// (int, from 0): "benchmark", 1, "timeout".
type Document struct {
	name   string
	lines  map[string]int
	faulty map[string]bool
}

// Has says that the text gives a value at the path, and one that could be
// decoded: what is wrong with any other has been said.
func (d *Document) Has(path ...any) bool {
	k := key(path)
	_, ok := d.lines[k]
	return ok && !d.faulty[k]
}

// Line is where the path stands, from 1; if it is not in the text, the line of
// the nearest table or array around it, at last 1.
func (d *Document) Line(path ...any) int {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if n, ok := d.lines[key(path)]; ok {
			return n
		}
	}
	return 1
}

// Errorf makes a fault at the path.
func (d *Document) Errorf(path []any, format string, args ...any) *Error {
	return &Error{File: d.name, Line: d.Line(path...), Text: fmt.Sprintf(format, args...)}
}

// key spells a path so that no two paths share a spelling.
func key(path []any) string {
	var s strings.Builder
	for _, p := range path {
		switch p := p.(type) {
		case int:
			fmt.Fprintf(&s, "[%d]", p)
		default:
			fmt.Fprintf(&s, ".%q", p)
		}
	}
	return s.String()
}

// dotted spells a path for a reader, without the places in arrays.
func dotted(path []any) string {
	var names []string
	for _, p := range path {
		if name, ok := p.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
