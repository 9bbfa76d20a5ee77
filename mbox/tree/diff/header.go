package diff

import (
	"bytes"
	"fmt"
)

// find skips to the next header and reads it.
func (p *parser) find() (*File, error) {
	p.old, p.new, p.header = "", "", false
	for ; len(p.text) > 0; p.next() {
		n := lineLen(p.text)
		if n < 6 {
			continue
		}
		if p.has("@@ -") {
			if _, ok := hunkHeader(p.text[:n]); !ok {
				continue
			}
			return nil, p.errorf("hunk without a file header before it")
		}
		// Git looks for no header in a text that is too short for what follows it.
		if len(p.text) < n+6 {
			return nil, nil
		}
		if p.has("diff --git ") {
			if f, err := p.gitHeader(); f != nil || err != nil {
				return f, err
			}
			continue
		}
		rest := p.text[n:]
		m := lineLen(rest)
		if !p.has("--- ") || !bytes.HasPrefix(rest, []byte("+++ ")) || !bytes.HasPrefix(rest[m:], []byte("@@ -")) || len(p.text) < m+14 {
			continue
		}
		return p.plainHeader(p.text[4:n], rest[4:m])
	}
	return nil, nil
}

// plainHeader reads the --- and +++ lines of a diff without `diff --git`.
func (p *parser) plainHeader(first, second []byte) (*File, error) {
	f := &File{Old: p.old, New: p.new, Create: Unknown, Delete: Unknown, Line: p.line}
	if p.header {
		f.Create, f.Delete = No, No
	}
	if bytes.IndexByte(first, 0) >= 0 || bytes.IndexByte(second, 0) >= 0 {
		return nil, p.errorf("%s", hasNUL)
	}
	if !p.known {
		a, b := guessStrip(first), guessStrip(second)
		if a < 0 {
			a = b
		}
		if a >= 0 && a == b {
			p.strip, p.known = a, true
		}
	}
	var name string
	switch {
	case isDevNull(first):
		f.Create, f.Delete = Yes, No
		name = plainName(second, "", p.strip)
		f.New = name
	case isDevNull(second):
		f.Create, f.Delete = No, Yes
		name = plainName(first, "", p.strip)
		f.Old = name
	default:
		name = plainName(second, plainName(first, "", p.strip), p.strip)
		switch {
		case isEpoch(first):
			f.Create, f.Delete, f.New = Yes, No, name
		case isEpoch(second):
			f.Create, f.Delete, f.Old = No, Yes, name
		default:
			f.Old, f.New = name, name
		}
	}
	if name == "" {
		return nil, p.errorf("no file name in %q with %d leading parts stripped", bytes.TrimSpace(second), p.strip)
	}
	if f.Create == Yes && f.Old != "" {
		return nil, p.errorf("a header of %s stands before that of the new file %s", f.Old, f.New)
	}
	p.next()
	p.next()
	return f, nil
}

// gitHeader reads a `diff --git` line and git's extended header lines. It gives
// nil without an error for a line with no header behind it.
func (p *parser) gitHeader() (*File, error) {
	f := &File{Old: p.old, New: p.new, Create: No, Delete: No, Line: p.line}
	rest, line := p.text, p.line
	n := lineLen(rest)
	if bytes.IndexByte(rest[:n], 0) >= 0 {
		return nil, p.errorf("%s", hasNUL)
	}
	def := headerName(rest[len("diff --git "):n], p.strip)
	p.next()
	begin := len(p.text)
	for done := false; !done && len(p.text) > 0; {
		var err error
		if done, err = p.extended(f, def); err != nil {
			err.(*Error).Path = def
			return nil, err
		}
		kinds := 0
		for _, set := range []bool{f.Delete == Yes, f.Create == Yes, f.Rename, f.Copy} {
			if set {
				kinds++
			}
		}
		if kinds > 1 {
			return nil, p.errorf("header says more than one of new, deleted, renamed and copied")
		}
		if !done {
			p.next()
		}
	}
	if f.Old == "" && f.New == "" {
		if def == "" {
			return nil, &Error{Line: line, Text: fmt.Sprintf("no file name in the header with %d leading parts stripped", p.strip)}
		}
		f.Old, f.New = def, def
		if f.Create == Yes {
			f.Old = ""
		}
		if f.Delete == Yes {
			f.New = ""
		}
	}
	if f.New == "" && f.Delete != Yes || f.Old == "" && f.Create != Yes {
		return nil, &Error{Line: line, Text: "header names only one of the two files"}
	}
	if f.Create == Yes && f.Old != "" {
		return nil, &Error{Line: line, Text: "header of a new file names an old one", Path: f.New}
	}
	if len(p.text) == begin {
		// The caller goes on behind the line. Git keeps the names that such a
		// line gives, so that a header of another file after it is refused.
		p.text, p.line, p.old, p.new, p.header = rest, line, f.Old, f.New, true
		return nil, nil
	}
	return f, nil
}

// extended reads one line of a git header; done says that it is none.
func (p *parser) extended(f *File, def string) (done bool, err error) {
	line := p.text[:lineLen(p.text)]
	after := func(prefix string) ([]byte, bool) { return bytes.CutPrefix(line, []byte(prefix)) }
	// What stands behind `rename from` has no a/ before it.
	less := max(p.strip-1, 0)
	if _, ok := after("@@ -"); ok {
		return true, nil
	}
	if v, ok := after("--- "); ok {
		f.Old, err = p.verify(f.Old, v, f.Create == Yes)
	} else if v, ok := after("+++ "); ok {
		f.New, err = p.verify(f.New, v, f.Delete == Yes)
	} else if v, ok := after("old mode "); ok {
		f.OldMode, err = p.mode(v)
	} else if v, ok := after("new mode "); ok {
		f.NewMode, err = p.newMode(v)
	} else if v, ok := after("deleted file mode "); ok {
		f.Delete, f.Old = Yes, def
		f.OldMode, err = p.mode(v)
	} else if v, ok := after("new file mode "); ok {
		f.Create, f.New = Yes, def
		f.NewMode, err = p.newMode(v)
	} else if v, ok := after("copy from "); ok {
		f.Copy, f.Old = true, findName(v, less, false)
	} else if v, ok := after("copy to "); ok {
		f.Copy, f.New = true, findName(v, less, false)
	} else if v, ok := cutEither(line, "rename old ", "rename from "); ok {
		f.Rename, f.Old = true, findName(v, less, false)
	} else if v, ok := cutEither(line, "rename new ", "rename to "); ok {
		f.Rename, f.New = true, findName(v, less, false)
	} else if _, ok := cutEither(line, "similarity index ", "dissimilarity index "); ok {
		// Says nothing that applying needs.
	} else if v, ok := after("index "); ok {
		err = p.index(f, v)
	} else {
		return true, nil
	}
	if bytes.IndexByte(line, 0) >= 0 {
		err = p.errorf("%s", hasNUL)
	}
	return false, err
}

// hasNUL refuses names which git would read to the NUL or beyond it, depending on
// the kind of the line. No tree can hold one.
const hasNUL = "path in the header holds a NUL character"

func cutEither(line []byte, a, b string) ([]byte, bool) {
	if v, ok := bytes.CutPrefix(line, []byte(a)); ok {
		return v, true
	}
	return bytes.CutPrefix(line, []byte(b))
}

// verify takes the name of a --- or +++ line, which must agree with what the
// lines above said.
func (p *parser) verify(have string, v []byte, none bool) (string, error) {
	switch {
	case have == "" && !none && isDevNull(v):
		return "", p.errorf("the header names /dev/null but says neither new file nor deleted file")
	case have == "" && !none:
		return findName(v, p.strip, true), nil
	case have == "":
		if !isDevNull(v) {
			return "", p.errorf("expected /dev/null, got %q", bytes.TrimSpace(v))
		}
		return "", nil
	case none:
		return "", p.errorf("expected /dev/null, got %q", have)
	}
	if again := findName(v, p.strip, true); again != have {
		return "", p.errorf("the header names both %q and %q", have, again)
	}
	return have, nil
}

func (p *parser) mode(v []byte) (uint32, error) {
	n, i := uint32(0), 0
	for ; i < len(v) && v[i] >= '0' && v[i] <= '7' && n < 1<<24; i++ {
		n = n<<3 | uint32(v[i]-'0')
	}
	if i == 0 || i == len(v) || !isSpace(v[i]) {
		return 0, p.errorf("%q is not a file mode", bytes.TrimSpace(v))
	}
	return n, nil
}

// newMode takes only modes that git itself writes, so that nothing else can get
// into a tree.
func (p *parser) newMode(v []byte) (uint32, error) {
	n, err := p.mode(v)
	if err != nil {
		return 0, err
	}
	switch n {
	case 0o100644, 0o100755, TypeLink, TypeModule:
		return n, nil
	}
	return 0, p.errorf("unsupported file mode %06o; known are 100644, 100755, 120000 and 160000", n)
}

// index reads OLD..NEW with an optional mode behind; a line of another form
// says nothing.
func (p *parser) index(f *File, v []byte) error {
	a, b, ok := bytes.Cut(v, []byte(".."))
	if !ok || len(a) > 40 {
		return nil
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	b, mode, hasMode := bytes.Cut(b, []byte(" "))
	if !hasMode {
		b = bytes.TrimRight(b, "\r")
	}
	if len(b) > 40 {
		return nil
	}
	f.OldID, f.NewID = string(a), string(b)
	if !hasMode {
		return nil
	}
	n, err := p.mode(append(mode[:len(mode):len(mode)], '\n'))
	if err == nil {
		f.OldMode = n
	}
	return err
}
