package diff

import (
	"bytes"
	"fmt"
)

// hunk reads one @@ part.
func (p *parser) hunk(f *File) (Hunk, error) {
	h, ok := hunkHeader(p.text[:lineLen(p.text)])
	h.Line = p.line
	corrupt := func(format string, args ...any) (Hunk, error) {
		return h, &Error{Line: p.line, Text: "corrupt hunk: " + fmt.Sprintf(format, args...)}
	}
	if !ok {
		return corrupt("its @@ line cannot be read")
	}
	if p.hunks++; p.hunks > MaxHunks {
		n := p.hunks + bytes.Count(p.text, []byte("\n@@ -"))
		return h, &Error{Text: fmt.Sprintf("patch has %d hunks, limit %d", n, MaxHunks)}
	}
	p.next()
	start := p.text
	oldLeft, newLeft := h.OldLines, h.NewLines
	added, deleted := 0, 0
	for ; oldLeft > 0 || newLeft > 0; p.next() {
		if len(p.text) == 0 {
			return corrupt("the patch ends inside it")
		}
		switch c := p.text[0]; c {
		case ' ', '\n':
			oldLeft--
			newLeft--
			if added == 0 && deleted == 0 {
				h.Leading++
			}
			h.Trailing++
		case '-':
			oldLeft--
			deleted++
			h.Trailing = 0
		case '+':
			newLeft--
			added++
			h.Trailing = 0
		case '\\':
			if !isNoNewline(p.text) {
				return corrupt("a line starts with a backslash")
			}
		default:
			return corrupt("a line starts with %q", c)
		}
		if oldLeft < 0 || newLeft < 0 {
			return corrupt("it has more lines than its @@ line says")
		}
	}
	if added == 0 && deleted == 0 {
		return corrupt("it changes nothing")
	}
	// Behind the last line git looks only at how much text is left.
	if len(p.text) > 12 && p.has(`\ `) {
		p.next()
	}
	h.Body = start[:len(start)-len(p.text)]
	f.Added += added
	f.Deleted += deleted
	if f.Create == Yes && h.OldLines > 0 {
		return h, p.errorf("new file %s depends on old contents", f.New)
	}
	if f.Delete == Yes && h.NewLines > 0 {
		return h, p.errorf("deleted file %s still has contents", f.Old)
	}
	return h, nil
}

// isNoNewline knows the line that says that the line above has no newline at
// its end. Its words depend on the language that diff was run in.
func isNoNewline(b []byte) bool { return lineLen(b) >= 12 && b[0] == '\\' && b[1] == ' ' }

// hunkHeader reads "@@ -1,2 +3,4 @@"; a count that is left out is 1.
func hunkHeader(line []byte) (h Hunk, ok bool) {
	rest := line[len("@@ -"):]
	if h.OldPos, h.OldLines, rest, ok = hunkRange(rest, " +"); !ok {
		return h, false
	}
	h.NewPos, h.NewLines, _, ok = hunkRange(rest, " @@")
	return h, ok
}

func hunkRange(b []byte, end string) (pos, lines int, rest []byte, ok bool) {
	if pos, b, ok = number(b); !ok {
		return 0, 0, nil, false
	}
	lines = 1
	if len(b) > 0 && b[0] == ',' {
		if lines, b, ok = number(b[1:]); !ok {
			return 0, 0, nil, false
		}
	}
	rest, ok = bytes.CutPrefix(b, []byte(end))
	return pos, lines, rest, ok
}

// number reads digits. More than 2^30 is no line of a file.
func number(b []byte) (n int, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if n = n*10 + int(b[i]-'0'); n > 1<<30 {
			return 0, b, false
		}
	}
	return n, b[i:], i > 0
}
