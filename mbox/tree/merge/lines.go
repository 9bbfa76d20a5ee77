package merge

import (
	"bytes"
	"slices"
	"strings"
)

// change is a run of the base's lines [from, to) that became side's [low, high).
type change struct {
	from, to  int
	low, high int
}

// changes gives the runs in which two texts differ, as git diff without its
// indent heuristic does.
func changes(base, side []string) []change {
	a, b := compare(base, side)
	var out []change
	for i, k := 0, 0; i < len(base) || k < len(side); {
		c := change{from: i, low: k}
		for i < len(base) && a.changed[i] {
			i++
		}
		for k < len(side) && b.changed[k] {
			k++
		}
		if c.to, c.high = i, k; c.from < c.to || c.low < c.high {
			out = append(out, c)
		}
		i, k = i+1, k+1
	}
	return out
}

// Lines brings the changes from base to ours and from base to theirs together,
// line by line. Changes that overlap or touch and are not the same are a
// conflict: line is then where it starts in ours, from 1. Binary files conflict
// as a whole, with line 0.
func Lines(base, ours, theirs []byte) (out []byte, line int, ok bool) {
	switch {
	case bytes.Equal(ours, theirs), bytes.Equal(base, theirs):
		return ours, 0, true
	case bytes.Equal(base, ours):
		return theirs, 0, true
	case isBinary(base) || isBinary(ours) || isBinary(theirs):
		return nil, 0, false
	}
	b, o, t := stringLines(base), stringLines(ours), stringLines(theirs)
	co, ct := changes(b, o), changes(b, t)
	var result []string
	at := 0                // in base
	shiftO, shiftT := 0, 0 // side's line minus base's, for unchanged lines
	for len(co) > 0 || len(ct) > 0 {
		// A group is all changes of both sides that overlap or touch.
		var from, to, nO, nT int
		switch {
		case len(ct) == 0 || len(co) > 0 && co[0].from <= ct[0].from:
			from, to, nO = co[0].from, co[0].to, 1
		default:
			from, to, nT = ct[0].from, ct[0].to, 1
		}
		for {
			if nO < len(co) && co[nO].from <= to {
				to = max(to, co[nO].to)
				nO++
			} else if nT < len(ct) && ct[nT].from <= to {
				to = max(to, ct[nT].to)
				nT++
			} else {
				break
			}
		}
		result = append(result, b[at:from]...)
		groupO := o[from+shiftO : to+shiftO+grow(co[:nO])]
		groupT := t[from+shiftT : to+shiftT+grow(ct[:nT])]
		switch {
		case nT == 0 || slices.Equal(groupO, groupT):
			result = append(result, groupO...)
		case nO == 0:
			result = append(result, groupT...)
		default:
			return nil, from + shiftO + 1, false
		}
		shiftO += grow(co[:nO])
		shiftT += grow(ct[:nT])
		co, ct = co[nO:], ct[nT:]
		at = to
	}
	result = append(result, b[at:]...)
	var buf bytes.Buffer
	for _, l := range result {
		buf.WriteString(l)
	}
	return buf.Bytes(), 0, true
}

// grow is by how many lines a side's changes are longer than what they replace.
func grow(cs []change) (n int) {
	for _, c := range cs {
		n += c.high - c.low - (c.to - c.from)
	}
	return n
}

// Count gives the numbers of lines that were added and deleted between two
// versions of a file, 0 for a binary one.
func Count(before, after []byte) (added, deleted int) {
	if isBinary(before) || isBinary(after) {
		return 0, 0
	}
	for _, c := range changes(stringLines(before), stringLines(after)) {
		added += c.high - c.low
		deleted += c.to - c.from
	}
	return added, deleted
}

// isBinary is git's guess: a NUL among the first 8000 bytes.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

func stringLines(b []byte) []string {
	lines := make([]string, 0, bytes.Count(b, []byte{'\n'})+1)
	for l := range strings.Lines(string(b)) {
		lines = append(lines, l)
	}
	return lines
}
