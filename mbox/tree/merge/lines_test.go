package merge

import "testing"

func TestLines(t *testing.T) {
	base := "a\nb\nc\nd\ne\nf\n"
	for _, c := range []struct {
		name, ours, theirs, want string
		line                     int
	}{
		{"apart", "A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\n", "A\nb\nc\nd\ne\nF\n", 0},
		{"one line between", "a\nB\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n", "a\nB\nc\nD\ne\nf\n", 0},
		{"touching", "a\nB\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", "", 2},
		{"same on both sides", "a\nX\nc\nd\ne\nf\n", "a\nX\nc\nd\nE\nf\n", "a\nX\nc\nd\nE\nf\n", 0},
		{"both add at one place", "a\nb\nx\nc\nd\ne\nf\n", "a\nb\ny\nc\nd\ne\nf\n", "", 3},
		{"deleted and kept", "a\nb\ne\nf\n", "0\na\nb\nc\nd\ne\nf\n", "0\na\nb\ne\nf\n", 0},
		{"newline at the end", "a\nb\nc\nd\ne\nf", "A\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nf", 0},
		{"binary", "a\x00", "b\x00", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, line, ok := Lines([]byte(base), []byte(c.ours), []byte(c.theirs))
			if string(out) != c.want || ok != (c.want != "") || line != c.line {
				t.Errorf("%q, line %d, %v; want %q, line %d", out, line, ok, c.want, c.line)
			}
		})
	}
}
