package config

import (
	"strconv"
	"strings"
)

// maxDepth bounds how deep tables and arrays may lie in each other: the time
// to read them grows with its square, and the stack with it.
const maxDepth = 32

// lines finds the line of every table, key and array element of a TOML text, by
// the spelling of key. The text is taken to be valid; of any other text it finds
// something and ends. deep is the line at which the text is nested too deep, 0
// for nowhere.
func lines(text string) (found map[string]int, deep int) {
	s := scanner{text: text, line: 1, found: map[string]int{}, last: map[string]int{}}
	s.text = strings.TrimPrefix(s.text, "\ufeff")
	var table []any
	for s.blank(true); s.pos < len(s.text) && s.deep == 0; s.blank(true) {
		if s.peek() == '[' {
			table = s.header()
			continue
		}
		s.pair(table)
	}
	return s.found, s.deep
}

type scanner struct {
	text  string
	pos   int
	line  int
	found map[string]int
	// last holds, for an array of tables, the place of its newest table.
	last map[string]int
	deep int
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) next() byte {
	if s.pos >= len(s.text) {
		return 0
	}
	c := s.text[s.pos]
	if c == '\n' {
		s.line++
	}
	s.pos++
	return c
}

// blank skips blanks and, across lines, newlines and comments.
func (s *scanner) blank(across bool) {
	for s.pos < len(s.text) {
		switch c := s.peek(); {
		case c == ' ' || c == '\t' || c == '\r':
			s.next()
		case across && c == '\n':
			s.next()
		case across && c == '#':
			for s.pos < len(s.text) && s.peek() != '\n' {
				s.next()
			}
		default:
			return
		}
	}
}

// note keeps where a path stands. A path that is too long ends the scan.
func (s *scanner) note(path []any, line int) {
	if len(path) > maxDepth {
		s.deep = line
		s.pos = len(s.text)
		return
	}
	k := key(path)
	if _, ok := s.found[k]; !ok {
		s.found[k] = line
	}
}

// header reads [a.b] or [[a.b]] and gives the path of the table that begins.
func (s *scanner) header() []any {
	line := s.line
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	names := s.names()
	for s.pos < len(s.text) && s.peek() != '\n' && s.peek() != '#' {
		s.next()
	}
	var path []any
	for i, name := range names {
		if path = at(path, name); len(path) > maxDepth+1 {
			break
		}
		s.note(path, line)
		k := key(path)
		if array && i == len(names)-1 {
			n, seen := s.last[k]
			if seen {
				n++
			}
			s.last[k] = n
		}
		if n, ok := s.last[k]; ok {
			path = at(path, n)
			s.note(path, line)
		}
	}
	return path
}

// pair reads one name = value below the path.
func (s *scanner) pair(path []any) {
	line, from := s.line, s.pos
	for _, name := range s.names() {
		if path = at(path, name); len(path) > maxDepth+1 {
			break
		}
		s.note(path, line)
	}
	s.blank(false)
	if s.peek() == '=' {
		s.next()
		s.blank(false)
		s.value(path)
	}
	if s.pos == from {
		s.next()
	}
}

// names reads a dotted key.
func (s *scanner) names() []string {
	var names []string
	for {
		s.blank(false)
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			from := s.pos
			s.quoted()
			names = append(names, unquote(s.text[from:min(s.pos, len(s.text))]))
		default:
			from := s.pos
			for isBare(s.peek()) {
				s.next()
			}
			names = append(names, s.text[from:s.pos])
		}
		s.blank(false)
		if s.peek() != '.' {
			return names
		}
		s.next()
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

func unquote(text string) string {
	if text[0] == '\'' {
		return strings.Trim(text, "'")
	}
	if name, err := strconv.Unquote(text); err == nil {
		return name
	}
	return strings.Trim(text, `"`)
}

// quoted skips a string of any of the four forms.
func (s *scanner) quoted() {
	quote := s.text[s.pos : s.pos+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.pos:], long) {
		quote = long
	}
	for range quote {
		s.next()
	}
	for s.pos < len(s.text) {
		switch {
		case quote[0] == '"' && s.peek() == '\\':
			s.next()
			s.next()
		case strings.HasPrefix(s.text[s.pos:], quote):
			for range quote {
				s.next()
			}
			// Up to two quotes may stand before the closing three.
			for len(quote) == 3 && s.peek() == quote[0] {
				s.next()
			}
			return
		default:
			s.next()
		}
	}
}

func (s *scanner) value(path []any) {
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.list(path)
	case '{':
		s.inline(path)
	default:
		for s.pos < len(s.text) && !strings.ContainsRune(",]}#\n", rune(s.peek())) {
			s.next()
		}
	}
}

func (s *scanner) list(path []any) {
	s.next()
	for i := 0; ; i++ {
		for s.blank(true); s.peek() == ','; s.blank(true) {
			s.next()
		}
		if s.pos >= len(s.text) || s.peek() == ']' || s.peek() == '}' {
			s.next()
			return
		}
		elem := at(path, i)
		s.note(elem, s.line)
		s.value(elem)
	}
}

func (s *scanner) inline(path []any) {
	s.next()
	for {
		for s.blank(true); s.peek() == ','; s.blank(true) {
			s.next()
		}
		if s.pos >= len(s.text) || s.peek() == '}' || s.peek() == ']' {
			s.next()
			return
		}
		s.pair(path)
	}
}
