package diff

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// HunkError says where a hunk does not apply.
type HunkError struct {
	Hunk   int // from 1, 0 for the file as a whole
	Line   int // in the file, from 1; 0 if unknown
	Reason string
}

func (e *HunkError) Error() string {
	switch {
	case e.Hunk == 0:
		return e.Reason
	case e.Line == 0:
		return fmt.Sprintf("hunk %d: %s", e.Hunk, e.Reason)
	}
	return fmt.Sprintf("hunk %d: line %d: %s", e.Hunk, e.Line, e.Reason)
}

// image is a file as lines, each with its newline. Lines that a hunk has put
// there are marked: no other hunk of the same patch may match them.
type image struct {
	lines [][]byte
	mine  []bool
	// Of the last hunk: the line behind its last change, and how far it was from
	// its place.
	free, drift int
}

func split(src []byte) [][]byte {
	lines := make([][]byte, 0, bytes.Count(src, []byte{'\n'})+1)
	for len(src) > 0 {
		n := lineLen(src)
		lines = append(lines, src[:n:n])
		src = src[n:]
	}
	return lines
}

// Place is where a hunk was put.
type Place struct {
	// Offset is how many lines away from where the patch says it was found.
	Offset int
	// Loose marks a hunk that git apply would refuse: Fuzz lines of context were left
	// out at an end, or, with 0, it does not stand at the start or the end of the
	// file although it belongs there.
	Loose bool
	Fuzz  int
}

// Text applies the hunks to a file's bytes, and gives the place of each. A hunk
// whose lines are nowhere is looked for with up to fuzz lines of context left out
// at an end, as patch(1) does with -F; 0 looks for whole hunks only, as git apply.
// The error is a *HunkError if one does not apply, or ctx's.
func (f *File) Text(ctx context.Context, src []byte, fuzz int) (out []byte, places []Place, err error) {
	img := image{lines: split(src)}
	img.mine = make([]bool, len(img.lines))
	for i := range f.Hunks {
		at, err := img.apply(ctx, &f.Hunks[i], fuzz)
		if err != nil {
			if e, ok := err.(*HunkError); ok {
				e.Hunk = i + 1
			}
			return nil, nil, err
		}
		places = append(places, at)
	}
	return bytes.Join(img.lines, nil), places, nil
}

// sides gives the lines before and after a hunk. A line with a "\ No newline"
// line behind it loses its newline.
func (h *Hunk) sides() (pre, post [][]byte) {
	for body := h.Body; len(body) > 0; {
		n := lineLen(body)
		line := body[:n:n]
		body = body[n:]
		end := n
		if len(body) > 0 && body[0] == '\\' {
			end--
		}
		switch line[0] {
		case '\n':
			// An empty line of context whose blank was trimmed on the way.
			if end > 0 {
				pre, post = append(pre, line), append(post, line)
			}
		case ' ':
			pre, post = append(pre, line[1:end]), append(post, line[1:end])
		case '-':
			pre = append(pre, line[1:end])
		case '+':
			post = append(post, line[1:end])
		}
	}
	return pre, post
}

func (img *image) apply(ctx context.Context, h *Hunk, fuzz int) (Place, error) {
	pre, post := h.sides()
	want := max(h.NewPos-1, 0)
	// As in git apply: a hunk that begins at line 1 must match at the start of
	// the file, and one without context behind it at the end.
	exact := search{want: want, atStart: h.OldPos <= 1, atEnd: h.Trailing == 0}
	at, err := img.find(ctx, pre, exact)
	if err != nil {
		return Place{}, err
	}
	place := Place{}
	if at >= 0 {
		img.put(at, len(pre), post)
	} else {
		place.Loose = true
		for n := 0; fuzz > 0 && at < 0 && n <= min(fuzz, max(h.Leading, h.Trailing)); n++ {
			if at, err = img.fuzzy(ctx, h, pre, post, want+img.drift, n); err != nil {
				return Place{}, err
			}
			place.Fuzz = n
		}
		if at < 0 {
			return Place{}, img.explain(h, pre, exact)
		}
	}
	place.Offset = at - want
	img.free, img.drift = at+len(post)-h.Trailing, at-want
	return place, nil
}

// put replaces lines by those of a hunk.
func (img *image) put(at, n int, post [][]byte) {
	img.lines = slices.Replace(img.lines, at, at+n, post...)
	img.mine = slices.Replace(img.mine, at, at+n, slices.Repeat([]bool{true}, len(post))...)
}

// fuzzy puts a hunk where it fits with n lines left out of the longer of its
// contexts, and the other made no longer than that. It gives the line where the
// whole hunk would begin, -1 for nowhere. The rules are those of patch(1): a hunk
// with less context in front stays at the start of the file, one with less behind
// at the end, until as much is left out as the other side has more; and none begins
// before the last change of the one before it.
func (img *image) fuzzy(ctx context.Context, h *Hunk, pre, post [][]byte, want, n int) (int, error) {
	longer := max(h.Leading, h.Trailing)
	head, tail := n+h.Leading-longer, n+h.Trailing-longer
	atStart, atEnd := head < 0 && h.OldPos <= 1, tail < 0
	head, tail = max(head, 0), max(tail, 0)
	if head+tail > min(len(pre), len(post)) ||
		!slices.EqualFunc(pre[:head], post[:head], bytes.Equal) ||
		!slices.EqualFunc(pre[len(pre)-tail:], post[len(post)-tail:], bytes.Equal) {
		return -1, nil // what is left out is not all context
	}
	core, to := pre[head:len(pre)-tail], post[head:len(post)-tail]
	at, err := img.find(ctx, core, search{want + head, img.free + head, atStart, atEnd, true})
	if at < 0 || err != nil {
		return -1, err
	}
	img.put(at, len(core), to)
	return at - head, nil
}

// search says where a hunk's old lines may be: outwards from the line want, not
// before the line low, at the start or the end of the file only, and again on
// lines that belong to an earlier hunk.
type search struct {
	want, low             int
	atStart, atEnd, again bool
}

// find looks for lines, first behind the one that is wanted, and gives -1 if they
// are nowhere.
func (img *image) find(ctx context.Context, pre [][]byte, s search) (int, error) {
	n := len(img.lines)
	if len(pre) > n {
		return -1, nil
	}
	if s.atStart || s.atEnd {
		at := 0
		if !s.atStart {
			at = n - len(pre)
		}
		if at < s.low || !img.match(pre, at, s) {
			return -1, nil
		}
		return at, nil
	}
	want := max(min(s.want, n), s.low)
	for d := 0; d <= max(want, n-want); d++ {
		if d&0xffff == 0xffff && ctx.Err() != nil {
			return -1, ctx.Err()
		}
		if img.match(pre, want+d, s) {
			return want + d, nil
		}
		if d > 0 && want-d >= s.low && img.match(pre, want-d, s) {
			return want - d, nil
		}
	}
	return -1, nil
}

// match says whether the old lines stand at a line of the file.
func (img *image) match(pre [][]byte, at int, s search) bool {
	if at < 0 || at+len(pre) > len(img.lines) || s.atEnd && at+len(pre) != len(img.lines) {
		return false
	}
	for i, line := range pre {
		if img.mine[at+i] && !s.again {
			return false
		}
		have := img.lines[at+i]
		if bytes.Equal(have, line) {
			continue
		}
		// Git compares bytes, so that a last line without a newline matches a
		// line that goes on with nothing but white space.
		if i != len(pre)-1 || s.atEnd || !bytes.HasPrefix(have, line) || bytes.HasSuffix(line, []byte("\n")) {
			return false
		}
		if len(bytes.TrimLeft(have[len(line):], " \t\r\n")) > 0 {
			return false
		}
	}
	return true
}

// explain finds out why a hunk is nowhere: the place where most of its lines
// match, and the first line there that does not.
func (img *image) explain(h *Hunk, pre [][]byte, s search) *HunkError {
	n := len(img.lines)
	if n == 0 {
		return &HunkError{Reason: "the file is empty"}
	}
	if h.Leading == 0 && h.Trailing == 0 && h.OldLines == 0 && !(s.atStart && s.atEnd) {
		return &HunkError{Line: min(s.want+1, n), Reason: "the hunk has no context (diff -U0), so that its place is not certain"}
	}
	score := func(at int) (same int) {
		for i, line := range pre {
			if at+i >= 0 && at+i < n && bytes.Equal(img.lines[at+i], line) {
				same++
			}
		}
		return same
	}
	expected := min(s.want, n-1)
	best, most := expected, score(expected)
	// The best place of all is looked for as long as that is cheap.
	if n*len(pre) <= 1<<22 {
		for d := 1; d <= max(expected, n-expected); d++ {
			for _, at := range []int{expected + d, expected - d} {
				if at >= 0 && at < n {
					if k := score(at); k > most {
						best, most = at, k
					}
				}
			}
		}
	}
	if most == len(pre) {
		switch {
		case s.atStart && best > 0:
			return &HunkError{Line: best + 1, Reason: fmt.Sprintf("the hunk belongs at the start of the file, but its lines stand at line %d", best+1)}
		case s.atEnd && best+len(pre) < n && h.Leading == 0:
			return &HunkError{Line: best + 1, Reason: "the hunk has no context (diff -U0), so that its place is not certain"}
		case s.atEnd && best+len(pre) < n:
			return &HunkError{Line: best + len(pre), Reason: fmt.Sprintf("the hunk belongs at the end of the file, but line %d follows it", best+len(pre)+1)}
		}
		return &HunkError{Line: best + 1, Reason: fmt.Sprintf("the lines from %d on were changed by an earlier hunk of this patch", best+1)}
	}
	for i, line := range pre {
		at := best + i
		if at >= n {
			return &HunkError{Line: n, Reason: fmt.Sprintf("the file ends at line %d, inside the hunk", n)}
		}
		have := img.lines[at]
		if bytes.Equal(have, line) {
			continue
		}
		reason := fmt.Sprintf("context differs at line %d", at+1)
		a, b := bytes.TrimRight(have, "\r\n"), bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.Equal(a, b) && bytes.HasSuffix(have, []byte("\r\n")) != bytes.HasSuffix(line, []byte("\r\n")):
			reason += ": only the line end differs (CRLF on one side)"
		case bytes.Equal(a, b):
			reason += ": only the newline at the end of the file differs"
		case bytes.Equal(noSpace(a), noSpace(b)):
			reason += ": only white space differs"
		}
		return &HunkError{Line: at + 1, Reason: reason}
	}
	return &HunkError{Reason: "the hunk does not apply"}
}

func noSpace(b []byte) []byte {
	return bytes.Join(bytes.Fields(b), nil)
}

// Reverse gives the file's change the other way round, for an additional check
// whether it has been made already. Binary changes cannot be turned.
func (f *File) Reverse() (File, error) {
	if f.IsBinary {
		return File{}, fmt.Errorf("the change of %s is binary", f.Name())
	}
	g := *f
	g.Old, g.New = f.New, f.Old
	g.OldMode, g.NewMode = f.NewMode, f.OldMode
	if f.NewMode == 0 {
		g.OldMode, g.NewMode = f.OldMode, 0
	}
	g.Create, g.Delete = f.Delete, f.Create
	g.OldID, g.NewID = f.NewID, f.OldID
	g.Added, g.Deleted = f.Deleted, f.Added
	if f.Copy {
		// What a copy made is deleted again.
		return File{}, fmt.Errorf("%s is a copy", f.New)
	}
	g.Hunks = make([]Hunk, len(f.Hunks))
	for i, h := range f.Hunks {
		h.OldPos, h.NewPos, h.OldLines, h.NewLines = h.NewPos, h.OldPos, h.NewLines, h.OldLines
		body := slices.Clone(h.Body)
		for at := 0; at < len(body); at += lineLen(body[at:]) {
			switch body[at] {
			case '+':
				body[at] = '-'
			case '-':
				body[at] = '+'
			}
		}
		h.Body = body
		g.Hunks[i] = h
	}
	return g, nil
}
