package output

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 3*tailBytes)
	for _, tt := range []struct {
		name  string
		texts []string // a leading ! marks a complaint
		want  string
	}{
		{"nothing", nil, ""},
		{"in order", []string{"a", "!b", "c"}, "abc"},
		{"output gives way", []string{"!why\n", long, "end"}, "why\n" + long[:tailBytes-7] + "end"},
		{"complaints give way above their half", []string{"out", "!" + long}, "out" + long[:tailBytes-3]},
		{"both too long", []string{long, "!" + long, long}, long[:tailBytes]},
		{"cut in a character", []string{"é" + long[:tailBytes-1]}, "\uFFFD" + long[:tailBytes-1]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Tail
			for _, text := range tt.texts {
				text, complaint := strings.CutPrefix(text, "!")
				l.add([]byte(text), complaint)
			}
			if diff := cmp.Diff(tt.want, l.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
