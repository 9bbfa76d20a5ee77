package patch

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"patchbench/mbox"
)

// diff is where a change lies in a text, from its first header line to the end
// of the last hunk or binary part. What stands between its files is within it,
// as git apply passes over that too.
type diff struct {
	start, end int
	style      string
	files      []string
}

// findDiff scans a text once for a change. A header counts only with what
// belongs to it (a hunk, extended header lines, a binary part), and a hunk ends
// where its counts say: a signature or footer behind it is no part of it.
func findDiff(b []byte) (diff, bool) {
	d := diff{start: -1}
	pending, pendingLines := -1, 0 // `diff -u`, `diff -r` or `Index:` without its --- yet
	hg, index := false, false
	for pos := 0; pos < len(b); {
		end := lineEnd(b, pos)
		line := b[pos:end]
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			if stop, names, ok := gitFile(b, pos); ok {
				d.add(pos, stop, mbox.StyleGit, names)
				pos, pending = stop, -1
				continue
			}
		case bytes.HasPrefix(line, []byte("diff --cc ")), bytes.HasPrefix(line, []byte("diff --combined ")):
			// A merge's diff applies nowhere, but it is what the mail offers.
			if stop, names, ok := gitFile(b, pos); ok {
				d.add(pos, stop, mbox.StyleGit, names)
				pos, pending = stop, -1
				continue
			}
		case bytes.HasPrefix(line, []byte("diff -")), bytes.HasPrefix(line, []byte("Index: ")):
			if pending < 0 {
				pending, pendingLines = pos, 0
				hg, index = false, false
			}
			hg = hg || bytes.HasPrefix(line, []byte("diff -r "))
			index = index || line[0] == 'I'
		case bytes.HasPrefix(line, []byte("--- ")):
			if stop, name, ok := plainFile(b, pos, index && pending >= 0); ok {
				style, start := mbox.StylePlain, pos
				if pending >= 0 {
					start = pending
					if hg {
						style = mbox.StyleHg
					}
				}
				d.add(start, stop, style, []string{name})
				pos, pending = stop, -1
				continue
			}
		default:
			if pending >= 0 {
				// CVS and Subversion put a few lines of their own here.
				if pendingLines++; pendingLines > 8 || len(bytes.TrimSpace(line)) == 0 {
					pending = -1
				}
			}
		}
		pos = end
	}
	return d, d.start >= 0
}

func (d *diff) add(start, end int, style string, names []string) {
	if d.start < 0 {
		d.start, d.style = start, style
	}
	d.end = end
	for _, name := range names {
		if name != "" && (len(d.files) > 64 || !slices.Contains(d.files, name)) {
			d.files = append(d.files, name)
		}
	}
}

// unique takes doubles out of a long list of names.
func unique(names []string) []string {
	if len(names) <= 64 {
		return names
	}
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(n string) bool {
		dup := seen[n]
		seen[n] = true
		return dup
	})
}

var extended = [][]byte{
	[]byte("index "), []byte("old mode "), []byte("new mode "), []byte("deleted file mode "),
	[]byte("new file mode "), []byte("copy from "), []byte("copy to "), []byte("rename from "),
	[]byte("rename to "), []byte("rename old "), []byte("rename new "), []byte("similarity index "),
	[]byte("dissimilarity index "), []byte("mode "),
}

// gitFile reads one file's change that begins with `diff --git` at pos and gives
// the offset behind it.
func gitFile(b []byte, pos int) (end int, names []string, ok bool) {
	first := b[pos:lineEnd(b, pos)]
	pos += len(first)
	name := ""
	for pos < len(b) {
		stop := lineEnd(b, pos)
		line := chomp(b[pos:stop])
		i := slices.IndexFunc(extended, func(p []byte) bool { return bytes.HasPrefix(line, p) })
		if i < 0 {
			break
		}
		ok = true
		if v := line[len(extended[i]):]; bytes.HasSuffix(extended[i], []byte(" to ")) || bytes.HasSuffix(extended[i], []byte("rename new ")) {
			name = unquoteName(v)
		}
		pos = stop
	}
	rest := b[pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("--- ")):
		if stop, plain, good := plainFile(b, pos, false); good {
			if name == "" {
				name = plain
			}
			return stop, []string{name}, true
		}
		// An interdiff or a mail that was cut here: keep what there is.
	case bytes.HasPrefix(rest, []byte("GIT binary patch")):
		ok = true
		pos = binaryEnd(b, lineEnd(b, pos))
	case bytes.HasPrefix(rest, []byte("Binary files ")), bytes.HasPrefix(rest, []byte("Binary file ")):
		ok = true
		pos = lineEnd(b, pos)
	}
	if name == "" {
		name = gitName(chomp(first))
	}
	return pos, []string{name}, ok
}

// gitName finds the name in a `diff --git a/x b/x` line, which holds it twice.
func gitName(line []byte) string {
	s := string(line)
	if rest, ok := strings.CutPrefix(s, "diff --cc "); ok {
		return unquoteName([]byte(rest))
	}
	s = strings.TrimPrefix(s, "diff --git ")
	if strings.HasPrefix(s, `"`) {
		if i := strings.LastIndex(s, ` "`); i > 0 {
			return stripFirst(unquoteName([]byte(s[i+1:])))
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' && stripFirst(s[:i]) == stripFirst(s[i+1:]) {
			return stripFirst(s[:i])
		}
	}
	if i := strings.LastIndex(s, " "); i >= 0 {
		return stripFirst(unquoteName([]byte(s[i+1:])))
	}
	return s
}

// binaryEnd gives the offset behind the literal or delta parts that begin at
// pos; a part ends with its blank line.
func binaryEnd(b []byte, pos int) int {
	for pos < len(b) {
		if rest := b[pos:]; !bytes.HasPrefix(rest, []byte("literal ")) && !bytes.HasPrefix(rest, []byte("delta ")) {
			return pos
		}
		pos = lineEnd(b, pos)
		for pos < len(b) {
			stop := lineEnd(b, pos)
			line := chomp(b[pos:stop])
			if len(line) == 0 {
				pos = stop
				break
			}
			// A line is a length letter and groups of five characters.
			if (len(line)-1)%5 != 0 || line[0]|0x20 < 'a' || line[0]|0x20 > 'z' {
				return pos
			}
			pos = stop
		}
	}
	return pos
}

// plainFile reads one file's change that begins with its --- line at pos.
func plainFile(b []byte, pos int, whole bool) (end int, name string, ok bool) {
	second := lineEnd(b, pos)
	if !bytes.HasPrefix(b[second:], []byte("+++ ")) {
		return 0, "", false
	}
	third := lineEnd(b, second)
	if !bytes.HasPrefix(b[third:], []byte("@@")) {
		return 0, "", false
	}
	from, to := fileName(b[pos+4:second]), fileName(b[second+4:third])
	name = to
	if to == "/dev/null" {
		name = from
	}
	if !whole {
		name = stripFirst(name)
	}
	pos = third
	for bytes.HasPrefix(b[pos:], []byte("@@")) {
		var good bool
		if pos, good = hunkEnd(b, pos); !good {
			break
		}
	}
	return pos, name, true
}

// hunkEnd gives the offset behind the hunk at pos. A hunk that ends before its
// counts are reached takes all up to the signature or the next file with it, so
// that whoever applies it can say where it is broken.
func hunkEnd(b []byte, pos int) (int, bool) {
	stop := lineEnd(b, pos)
	old, patched, ok := hunkCounts(b[pos:stop])
	pos = stop
	for ok && (old > 0 || patched > 0) {
		if pos >= len(b) {
			return pos, false
		}
		switch b[pos] {
		case ' ', '\n', '\r':
			// Some mailers trim the blank of an empty context line.
			old--
			patched--
		case '-':
			old--
		case '+':
			patched--
		case '\\':
		default:
			ok = false
			continue
		}
		if old < 0 || patched < 0 {
			ok = false
			continue
		}
		pos = lineEnd(b, pos)
	}
	if ok {
		if pos < len(b) && b[pos] == '\\' {
			pos = lineEnd(b, pos)
		}
		return pos, true
	}
	for pos < len(b) {
		end := lineEnd(b, pos)
		line := b[pos:end]
		if string(chomp(line)) == "-- " || bytes.HasPrefix(line, []byte("diff -")) {
			break
		}
		pos = end
	}
	return pos, false
}

// hunkCounts reads `@@ -a,b +c,d @@`.
func hunkCounts(line []byte) (old, patched int, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("@@ -"))
	if !ok {
		return 0, 0, false
	}
	before, after, ok := bytes.Cut(rest, []byte(" +"))
	if !ok {
		return 0, 0, false
	}
	after, _, ok = bytes.Cut(after, []byte(" @@"))
	if !ok {
		return 0, 0, false
	}
	if old, ok = count(before); !ok {
		return 0, 0, false
	}
	patched, ok = count(after)
	return old, patched, ok
}

func count(span []byte) (int, bool) {
	_, n, found := bytes.Cut(span, []byte(","))
	if !found {
		return 1, true
	}
	v, err := strconv.Atoi(string(n))
	return v, err == nil && v >= 0
}

// fileName takes the name from behind --- or +++: up to a tab, unquoted.
func fileName(v []byte) string {
	v = chomp(v)
	if len(v) > 0 && v[0] == '"' {
		return unquoteName(v)
	}
	if i := bytes.IndexByte(v, '\t'); i >= 0 {
		v = v[:i]
	}
	return strings.TrimRight(string(v), " \r")
}

// stripFirst takes off the first folder, as git apply -p1.
func stripFirst(name string) string {
	if name == "/dev/null" {
		return name
	}
	if _, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		return rest
	}
	return name
}

// unquoteName undoes git's C-style quoting of names.
func unquoteName(v []byte) string {
	s := strings.TrimRight(string(v), "\r\n")
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	var out []byte
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == '"' {
			break
		}
		if c != '\\' || i+1 >= len(s) {
			out = append(out, c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'a':
			c = '\a'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'v':
			c = '\v'
		case '0', '1', '2', '3':
			if i+2 < len(s) {
				if n, err := strconv.ParseUint(s[i:i+3], 8, 8); err == nil {
					c = byte(n)
					i += 2
				}
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// lineEnd is the offset behind the line that begins at pos.
func lineEnd(b []byte, pos int) int {
	if pos >= len(b) {
		return len(b)
	}
	if i := bytes.IndexByte(b[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(b)
}

func chomp(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
