package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/mbox"
	"patchbench/mbox/tree"
	"patchbench/mbox/tree/diff"
)

// edit changes one line of the twenty of a.c.
func edit(line byte) string {
	i := int(line - 'a')
	name := func(k int) string { return "line " + string(rune('a'+k)) + "\n" }
	return fmt.Sprintf("diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -%d,3 +%d,3 @@\n %s-%s+%s %s",
		i, i, name(i-1), name(i), strings.ToUpper(name(i)), name(i+1))
}

// patchID is git's id of what a commit changes.
func patchID(t *testing.T, dir, commit string) string {
	t.Helper()
	out, err := tryGit(dir, []byte(git(t, dir, "show", commit)+"\n"), "patch-id", "--stable")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)[0]
}

// TestPrerequisites applies what is at hand beneath the series, finds what is in
// the base, and reports the rest.
func TestPrerequisites(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(20)})
	commit(t, dir, "first")
	put(t, dir, map[string]string{"a.c": strings.Replace(lines(20), "line q\n", "LINE Q\n", 1)})
	inBase := commit(t, dir, "second")
	inBaseID := patchID(t, dir, inBase)
	base := commit(t, dir, "third\n\nMessage-ID: <linked@example.com>")
	before := git(t, dir, "rev-parse", "HEAD^{tree}")

	needed := one(edit('c'), edit('f'), edit('i'))
	needed.MessageID, needed.Cover = "cover@example.com", &mbox.Cover{MessageID: "cover@example.com"}
	for i, id := range []string{"n1@example.com", "n2@example.com", "n3@example.com"} {
		needed.Patches[i].MessageID = id
	}
	bad := one(strings.Replace(edit('m'), " line l", " line z", 1))
	bad.MessageID, bad.Patches[0].MessageID, bad.Patches[0].Subject = "bad@example.com", "bad@example.com", "does not fit"
	there := one(edit('q'))
	there.MessageID, there.Patches[0].MessageID = "there@example.com", "there@example.com"
	s := one(edit('o'))
	s.MessageID = "it@example.com"
	hand := []mbox.Series{*s, *bad, *there, *needed}

	const nowhere = "neither at hand nor among the newest 3 commits of the base"
	r := open(t, dir)
	for _, c := range []struct {
		name string
		pre  []mbox.Prerequisite
		want []tree.Prerequisite
		gone string // the lines that are changed in version 0
	}{
		{"none", nil, nil, "q"},
		{"by patch id", []mbox.Prerequisite{{PatchID: diff.PatchID([]byte(edit('f')))}}, []tree.Prerequisite{{State: "applied"}}, "qf"},
		{"by a cover", []mbox.Prerequisite{{MessageID: "cover@example.com"}}, []tree.Prerequisite{{State: "applied"}}, "qcfi"},
		{"by the second patch", []mbox.Prerequisite{{MessageID: "n2@example.com"}}, []tree.Prerequisite{{State: "applied"}}, "qcf"},
		{"twice", []mbox.Prerequisite{{MessageID: "n1@example.com"}, {MessageID: "cover@example.com"}}, []tree.Prerequisite{{State: "applied"}, {State: "applied"}}, "qcfi"},
		{"at hand and in the base", []mbox.Prerequisite{{MessageID: "there@example.com"}}, []tree.Prerequisite{{State: "in-base"}}, "q"},
		{"in the base by its id", []mbox.Prerequisite{{PatchID: inBaseID}}, []tree.Prerequisite{{State: "in-base", Note: "it is commit " + inBase[:12]}}, "q"},
		{"in the base by its message", []mbox.Prerequisite{{MessageID: "linked@example.com"}}, []tree.Prerequisite{{State: "in-base", Note: "it is commit " + base[:12]}}, "q"},
		{"missing", []mbox.Prerequisite{{PatchID: strings.Repeat("ab", 20)}, {MessageID: "n1@example.com"}}, []tree.Prerequisite{{State: "missing", Note: nowhere}, {State: "applied"}}, "qc"},
		{"does not apply", []mbox.Prerequisite{{MessageID: "bad@example.com"}},
			[]tree.Prerequisite{{State: "missing", Note: `"does not fit" is at hand and does not apply: a.c: hunk 1: line 12: context differs at line 12`}}, "q"},
		{"the series itself", []mbox.Prerequisite{{MessageID: "it@example.com"}}, []tree.Prerequisite{{State: "missing", Note: nowhere}}, "q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.Prerequisites = c.pre
			st, err := r.Apply(t.Context(), mbox.Base{Commit: base}, &s, tree.Options{AtHand: hand})
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i].PatchID, c.want[i].MessageID = c.pre[i].PatchID, c.pre[i].MessageID
			}
			if d := cmp.Diff(c.want, st.Prerequisites, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if st.Conflict != nil || len(st.Steps) != 1 {
				t.Fatalf("conflict %+v", st.Conflict)
			}
			want := lines(20)
			for _, l := range c.gone {
				want = strings.Replace(want, "line "+string(l)+"\n", "LINE "+strings.ToUpper(string(l))+"\n", 1)
			}
			if data, err := r.Files(st.Commit(0), "a.c"); err != nil || string(data) != want {
				t.Errorf("version 0, %v:\n%s", err, cmp.Diff(want, string(data)))
			}
			want = strings.Replace(want, "line o\n", "LINE O\n", 1)
			if data, err := r.Files(st.Commit(1), "a.c"); err != nil || string(data) != want {
				t.Errorf("version 1, %v:\n%s", err, cmp.Diff(want, string(data)))
			}
			if (st.Built == nil) != (c.gone == "q") {
				t.Errorf("built: %+v", st.Built)
			}
		})
	}
	if after := git(t, dir, "rev-parse", "HEAD^{tree}"); after != before {
		t.Errorf("the repository was written: %s, %s", before, after)
	}
}

// TestOldPrerequisites looks for prerequisites behind the newest commits: those that
// touch a file of the series are found as far back as the base that it names.
func TestOldPrerequisites(t *testing.T) {
	dir := newRepo(t)
	when := 1_700_000_000
	var stream strings.Builder
	change := func(message, name, text string) {
		when += 24 * 3600
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata %d\n%s\nM 100644 inline %s\ndata %d\n%s\n",
			when, len(message), message, name, len(text), text)
	}
	change("start", "a.c", lines(20))
	change("named", "d/e/other.c", lines(20))
	change("wanted", "a.c", strings.Replace(lines(20), "line q\n", "LINE Q\n", 1))
	change("elsewhere", "d/e/other.c", strings.Replace(lines(20), "line q\n", "LINE Q\n", 1))
	change("linked\n\nMessage-ID: <linked@example.com>", "x", "x\n")
	for i := range 510 {
		change("more", "more.c", fmt.Sprint(i, "\n"))
	}
	if _, err := tryGit(dir, []byte(stream.String()), "fast-import", "--quiet"); err != nil {
		t.Fatal(err)
	}
	at := func(back int) string { return git(t, dir, "rev-parse", fmt.Sprintf("main~%d", back)) }
	wanted, linked, base := at(512), at(510), at(0)
	byID := mbox.Prerequisite{PatchID: patchID(t, dir, wanted)}
	const near = "neither at hand nor among the newest 500 commits of the base"
	far := func(n int) string {
		return near + fmt.Sprintf(", nor among those of its newest %d that touch the same files", n)
	}
	r := open(t, dir)
	for _, c := range []struct {
		name  string
		named string // the base that the mail names
		pre   mbox.Prerequisite
		want  tree.Prerequisite
	}{
		{"touches a file of the series", "", byID, tree.Prerequisite{State: "in-base", Note: "it is commit " + wanted[:12]}},
		{"behind the base of the series", at(513), byID, tree.Prerequisite{State: "in-base", Note: "it is commit " + wanted[:12]}},
		{"by its message", "", mbox.Prerequisite{MessageID: "linked@example.com"}, tree.Prerequisite{State: "in-base", Note: "it is commit " + linked[:12]}},
		{"touches another file", "", mbox.Prerequisite{PatchID: patchID(t, dir, at(511))}, tree.Prerequisite{State: "missing", Note: far(515)}},
		{"long before the base of the series", at(400), byID, tree.Prerequisite{State: "missing", Note: near}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one(edit('o'))
			s.Prerequisites = []mbox.Prerequisite{c.pre}
			if c.named != "" {
				s.Base = &mbox.Base{Commit: c.named}
			}
			st, err := r.Apply(t.Context(), mbox.Base{Commit: base}, s, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.want.PatchID, c.want.MessageID = c.pre.PatchID, c.pre.MessageID
			if d := cmp.Diff([]tree.Prerequisite{c.want}, st.Prerequisites); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestWith puts patches on the base and every version, and names the version
// that they do not apply to.
func TestWith(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(20)})
	base := mbox.Base{Commit: commit(t, dir, "base")}
	r := open(t, dir)
	clash := strings.Replace(edit('f'), "LINE F", "line 6", 1)
	for _, c := range []struct {
		name  string
		extra []tree.Extra
		want  []string // lines changed in the versions that are built
		n     int      // of the conflict
		rest  []int
		text  string
	}{
		{"nothing", nil, []string{"", "c", "cf", "cfi"}, -1, []int{}, ""},
		{"apart", []tree.Extra{{Name: "x.mbox", Series: one(edit('p'))}}, []string{"p", "pc", "pcf", "pcfi"}, -1, []int{}, ""},
		{"two files", []tree.Extra{{Name: "x", Series: one(edit('p'), edit('r'))}, {Name: "y", Series: one(edit('l'))}},
			[]string{"prl", "prlc", "prlcf", "prlcfi"}, -1, []int{}, ""},
		{"in the series too", []tree.Extra{{Name: "x", Series: one(edit('f'))}}, []string{"f", "fc", "fc", "fci"}, -1, []int{}, ""},
		{"clashes with patch 2", []tree.Extra{{Name: "x.mbox", Series: one(clash)}}, nil, 2, []int{3},
			"x.mbox, which every version gets, does not apply to version 2/3: "},
		{"clashes with the base", []tree.Extra{{Name: "x.mbox", Series: one(strings.Replace(edit('f'), " line e", " line z", 1))}}, nil, 0, []int{1, 2, 3},
			"x.mbox, which every version gets, does not apply to the base: context differs at line 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := r.Apply(t.Context(), base, one(edit('c'), edit('f'), edit('i')), tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			plain := *st
			plain.Steps = append([]tree.Step(nil), st.Steps...)
			if err := r.With(t.Context(), st, c.extra, tree.Options{}); err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(c.rest, st.NotTried) {
				t.Errorf("not tried %v, want %v", st.NotTried, c.rest)
			}
			if c.n >= 0 {
				if st.Conflict == nil || st.Conflict.N != c.n || !strings.HasPrefix(st.Conflict.Files[0].Reason, c.text) {
					t.Errorf("conflict %+v, want at %d: %s", st.Conflict, c.n, c.text)
				}
				if len(st.Steps) != max(c.n-1, 0) {
					t.Errorf("%d steps", len(st.Steps))
				}
				return
			}
			if st.Conflict != nil {
				t.Fatalf("conflict %+v", st.Conflict)
			}
			for n, changed := range c.want {
				want := lines(20)
				for _, l := range changed {
					want = strings.Replace(want, "line "+string(l)+"\n", "LINE "+strings.ToUpper(string(l))+"\n", 1)
				}
				data, err := r.Files(st.Commit(n), "a.c")
				if err != nil || string(data) != want {
					t.Errorf("version %d, %v:\n%s", n, err, cmp.Diff(want, string(data)))
				}
			}
			for i, step := range st.Steps {
				if step.Commit != plain.Steps[i].Commit || step.Tree != plain.Steps[i].Tree {
					t.Errorf("step %d is another commit than without the extra patches", step.N)
				}
			}
			if st.Commit(4) != "" {
				t.Errorf("there is a version 4: %s", st.Commit(4))
			}
		})
	}
}
