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
