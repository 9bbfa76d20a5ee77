package listing

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// TestJSON holds the listing that is written piece by piece against the one
// written at once.
func TestJSON(t *testing.T) {
	id := "0@example.org"
	full := mbox.Listing{
		Series: []mbox.Series{
			{Subject: "a <b> & c", Tags: []string{}, Missing: []int{}, Lists: []string{"x"}, Patches: []mbox.Patch{{N: 1, Files: []string{"f", "g"}}, {N: 2, Files: []string{}}}},
			{Subject: "d", Supersedes: &id, Tags: []string{"RFC"}, Missing: []int{1, 2}, Lists: []string{}, Patches: []mbox.Patch{}},
		},
		Skipped:  []mbox.Skipped{{Reason: "r"}, {Reason: "s"}},
		Problems: []mbox.Problem{{Error: "e"}},
	}
	for name, l := range map[string]mbox.Listing{"full": full, "empty": {Series: []mbox.Series{}, Skipped: []mbox.Skipped{}, Problems: []mbox.Problem{}}} {
		var want, got bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(l); err != nil {
			t.Fatal(err)
		}
		made := &List{
			series:   func(i int) (mbox.Series, error) { return l.Series[i], nil },
			lineages: lineages(slices.Repeat([]int{-1}, len(l.Series))),
			skips:    func(bool) iter.Seq2[mbox.Skipped, error] { return entries(l.Skipped) },
			broken:   entries(l.Problems),
		}
		if err := made.JSON(&got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.String(), got.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func entries[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range list {
			if !yield(one, nil) {
				return
			}
		}
	}
}
