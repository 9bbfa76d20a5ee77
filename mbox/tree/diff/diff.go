// Package diff reads a patch's text and applies it to the bytes of files. In
// goes one patch as git, hg, diff -u or cvs wrote it; out come Files with their
// names, modes and hunks, and for each the bytes after it. It is the part of
// mbox/tree that knows no repository.
//
//	diff --git a/lib/sum.c b/lib/sum.c
//	index 1f2e3d4..5a6b7c8 100644
//	--- a/lib/sum.c
//	+++ b/lib/sum.c
//	@@ -1,3 +1,3 @@ int sum(void)
//	 one
//	-two
//	+zwei
//	 three
//
// What is taken and what is refused, and where a hunk may land, follows git
// apply, which is the oracle of the tests. Names are not judged here: whether a
// path is safe to use is for the caller to say.
package diff

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits on one patch.
const (
	MaxFiles  = 5000
	MaxHunks  = 20000
	MaxLine   = 1 << 20  // bytes
	MaxBinary = 16 << 20 // bytes, of a binary file's data
)

// Kinds of files, the upper bits of a mode as git writes it.
const (
	TypeMask    = 0o170000
	TypeRegular = 0o100000
	TypeLink    = 0o120000
	TypeModule  = 0o160000 // a submodule's commit
)

// File is one file of a patch. Names have a/ and b/ stripped.
type File struct {
	// Old and New are the names before and after; "" where there is none, for a
	// file that is created or deleted.
	Old, New string
	// OldMode and NewMode are those that the patch names, 0 for none.
	OldMode, NewMode uint32
	// Create and Delete say whether the file is made or removed; a plain diff
	// often cannot know until it is held against a tree.
	Create, Delete Maybe
	Rename, Copy   bool
	// OldID and NewID are the hex blob ids of the index line, mostly
	// abbreviated; "" if there is none.
	OldID, NewID string
	Hunks        []Hunk
	// IsBinary marks a binary change; Binary is nil if the patch only says
	// that the files differ.
	IsBinary bool
	Binary   *Binary
	// Line is where in the patch's text the file begins, from 1.
	Line int
	// Added and Deleted count lines.
	Added, Deleted int
}

// Maybe is a truth that the text of a patch may leave open.
type Maybe int8

// The values of a Maybe.
const (
	Unknown Maybe = iota - 1
	No
	Yes
)

// Name is the file's name before, or after if it is created.
func (f *File) Name() string {
	if f.Old != "" {
		return f.Old
	}
	return f.New
}

// Hunk is one @@ part of a file. Positions count lines from 1.
type Hunk struct {
	OldPos, OldLines int
	NewPos, NewLines int
	// Leading and Trailing count the lines of context at the ends.
	Leading, Trailing int
	// Body is the hunk's lines without the @@ line.
	Body []byte
	Line int // of the @@ line in the patch's text, from 1
}

// Error says where a patch's text cannot be read.
type Error struct {
	Line int    // in the patch's text, from 1; 0 for the whole
	Text string // what is wrong there
	// Path is the file that was being read, if its name was known.
	Path string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Text)
}

// Strip says how many leading parts of a name are cut off.
type Strip int

// Guess strips one part as git does, and none from a plain diff whose names
// have no slash.
const Guess Strip = -1

// Parse reads all files of a patch, skipping text around them. It fails with an
// *Error where git apply would, and on a patch beyond the limits. A patch in
// which there is no diff gives none.
func Parse(text []byte, strip Strip) ([]File, error) {
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text[:n:n], '\n')
	}
	if err := checkLines(text); err != nil {
		return nil, err
	}
	p := parser{text: text, line: 1, strip: 1}
	if strip != Guess {
		p.strip, p.known = int(strip), true
	}
	var files []File
	for {
		f, err := p.file()
		if err != nil {
			return nil, err
		}
		if f == nil {
			return files, nil
		}
		if len(files) == MaxFiles {
			return nil, p.errorf("patch has more than %d files", MaxFiles)
		}
		files = append(files, *f)
	}
}

// Withheld names the files of which a patch says only that they have changed, as
// `hg export` without --git does of binary ones. Parse skips them, as hg import does.
func Withheld(text []byte) (names []string) {
	header := false
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		name, ok := bytes.CutPrefix(line, []byte("Binary file "))
		if name, has := bytes.CutSuffix(name, []byte(" has changed")); header && ok && has {
			names = append(names, string(name))
		}
		header = bytes.HasPrefix(line, []byte("diff -r "))
	}
	return names
}

func checkLines(text []byte) error {
	for n := 1; len(text) > 0; n++ {
		i := bytes.IndexByte(text, '\n')
		if i > MaxLine {
			return &Error{Line: n, Text: "line longer than 1 MiB"}
		}
		text = text[i+1:]
	}
	return nil
}

type parser struct {
	text  []byte // what is left
	line  int    // number of its first line
	strip int
	known bool // strip is settled
	hunks int
	// old and new are names of a header line with nothing behind it. Git reads
	// what follows it as a change of a file that is there.
	old, new string
	header   bool
}

// lineLen is the length of the first line with its newline.
func lineLen(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{Line: p.line, Text: fmt.Sprintf(format, args...)}
}

func (p *parser) next() {
	p.text = p.text[lineLen(p.text):]
	p.line++
}

func (p *parser) has(prefix string) bool {
	return len(p.text) >= len(prefix) && string(p.text[:len(prefix)]) == prefix
}

// file reads up to the end of the next file; nil if there is no more.
func (p *parser) file() (*File, error) {
	f, err := p.find()
	if f == nil || err != nil {
		return nil, err
	}
	named := func(err error) error {
		if e, ok := err.(*Error); ok && e.Path == "" {
			e.Path = f.Name()
		}
		return err
	}
	oldLines, newLines := 0, 0
	for len(p.text) > 4 && p.has("@@ -") {
		h, err := p.hunk(f)
		if err != nil {
			return nil, named(err)
		}
		f.Hunks = append(f.Hunks, h)
		oldLines += h.OldLines
		newLines += h.NewLines
	}
	if f.Create == Unknown && (oldLines > 0 || len(f.Hunks) > 1) {
		f.Create = No
	}
	if f.Delete == Unknown && (newLines > 0 || len(f.Hunks) > 1) {
		f.Delete = No
	}
	if f.Create == Yes && oldLines > 0 {
		return nil, named(p.errorf("new file %s depends on old contents", f.New))
	}
	if f.Delete == Yes && newLines > 0 {
		return nil, named(p.errorf("deleted file %s still has contents", f.Old))
	}
	if len(f.Hunks) > 0 {
		return f, nil
	}
	first := string(p.text[:lineLen(p.text)])
	switch {
	case first == "GIT binary patch\n":
		f.IsBinary = true
		p.next()
		if f.Binary, err = p.binary(); err != nil {
			return nil, named(err)
		}
	case strings.HasSuffix(first, " differ\n") &&
		(strings.HasPrefix(first, "Binary files ") || strings.HasPrefix(first, "Files ")):
		f.IsBinary = true
		p.next()
	}
	changed := f.OldMode != 0 && f.NewMode != 0 && f.OldMode != f.NewMode
	if !f.IsBinary && !f.Rename && !f.Copy && f.Create != Yes && f.Delete != Yes && !changed {
		return nil, named(p.errorf("no change of %s follows its header", f.Name()))
	}
	return f, nil
}

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
