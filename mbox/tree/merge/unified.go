package merge

import (
	"bytes"
	"fmt"
)

// Unified gives the hunks between two texts as git diff writes them, with lines
// of context around each change; nothing for equal texts.
func Unified(before, after []byte, context int) []byte {
	a, b := stringLines(before), stringLines(after)
	list := changes(a, b)
	var out bytes.Buffer
	line := func(mark byte, text string) {
		out.WriteByte(mark)
		out.WriteString(text)
		if text[len(text)-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].from-list[n-1].to <= 2*context {
			n++
		}
		first, last := list[0], list[n-1]
		from, to := max(first.from-context, 0), min(last.to+context, len(a))
		low, high := max(first.low-context, 0), min(last.high+context, len(b))
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(from, to), hunkRange(low, high))
		at := from
		for _, c := range list[:n] {
			for ; at < c.from; at++ {
				line(' ', a[at])
			}
			for ; at < c.to; at++ {
				line('-', a[at])
			}
			for i := c.low; i < c.high; i++ {
				line('+', b[i])
			}
		}
		for ; at < to; at++ {
			line(' ', a[at])
		}
		list = list[n:]
	}
	return out.Bytes()
}

func hunkRange(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
