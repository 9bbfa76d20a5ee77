package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bot/input"
	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// applyCase is what make-apply-cases.sh says of one mailbox.
type applyCase struct {
	ID, Variant, Mbox string
	ApplyOnto         string `json:"apply_onto"`
	Total             int
	Version           int
	Missing           []int
	Patches           []struct {
		N       int
		Commit  string
		Author  string // of hg
		HgDate  string
		Name    string `json:"author_name"`
		Email   string `json:"author_email"`
		Date    string `json:"author_date"`
		Subject string
		Tree    string `json:"history_tree"`
	}
	Am          *amResult
	Am3         *amResult
	Import      *amResult
	ExpectTrees []string `json:"expect_trees"`
}

type amResult struct {
	OK      bool
	Applied int
	Trees   []string
	Seconds float64
}

// want gives the trees that are to be reached and whether all patches apply.
func (c *applyCase) want() (trees []string, ok bool) {
	switch {
	case c.Import != nil:
		return c.ExpectTrees, c.Import.OK
	case len(c.Missing) > 0:
		// The oracle was given what stands before the hole.
		return c.ExpectTrees[:min(len(c.ExpectTrees), c.Missing[0]-1)], true
	case c.Am3 != nil:
		return c.Am3.Trees, c.Am3.OK
	}
	return c.ExpectTrees, c.Am.OK
}

// TestApplyCases takes mailboxes from their bytes to trees and holds each step
// against what git am, git am -3 or hg import made of the same mailbox, and
// author, date and subject against the commits that it was made from.
//
// PATCHBENCH_APPLY_CASES names an output folder of make-apply-cases.sh and
// PATCHBENCH_APPLY_REPO its repository; without them the script makes cases of
// this project's own history and of a small repository with a bit of everything,
// in CI or with PATCHBENCH_LONG=apply.
func TestApplyCases(t *testing.T) {
	if dir, repo := os.Getenv("PATCHBENCH_APPLY_CASES"), os.Getenv("PATCHBENCH_APPLY_REPO"); dir != "" && repo != "" {
		applyCases(t, dir, repo)
		return
	}
	if long := os.Getenv("PATCHBENCH_LONG"); os.Getenv("CI") != "true" && long != "apply" {
		t.Skip("the cases take some minutes to make; PATCHBENCH_LONG=apply makes them")
	}
	script := filepath.Join(sharedCases(t), "make-apply-cases.sh")
	for _, tool := range []string{"git", "hg", "python3", "bash"} {
		needTool(t, tool)
	}
	for _, c := range []struct{ name, repo, count, variants string }{
		// What this project's history has no use for takes long to look for.
		{"own history", ownRepo(t), "12", "plain cover shuffled cte-qp cte-b64 crlf attach mboxrd missing list-munged hg-export hg-email-git"},
		{"made", motley(t), "36", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.repo == "" {
				t.Skip("the sources are not in a git repository")
			}
			dir := t.TempDir()
			cmd := exec.Command("bash", script, c.repo, dir, "5", c.count)
			cmd.Env = append(os.Environ(), "MAXLEN=8", "SCRATCH="+t.TempDir(), "VARIANTS="+c.variants)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			applyCases(t, dir, c.repo)
		})
	}
}

// ownRepo is this project's repository, "" where the sources stand alone.
func ownRepo(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "rev-parse", "--path-format=absolute", "--git-common-dir").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// motley makes a repository whose history has a bit of everything: two lines of
// development that merge, renames, modes, links, binary files, a submodule, empty
// files, no newline at the end.
func motley(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	runGit(t, dir, "init", "-q", "-b", "main")
	rng := rand.New(rand.NewPCG(4, 4))
	text := func(name string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s has a line %d of %d\n", name, i, rng.IntN(1000))
		}
		return b.String()
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, data string) {
		if err := os.MkdirAll(filepath.Dir(file(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, file(name), data)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	edit := func(name string) {
		data, err := os.ReadFile(file(name))
		ok(err)
		lines := strings.SplitAfter(string(data), "\n")
		at := rng.IntN(len(lines))
		lines = slices.Insert(lines, at, text(name, 1+rng.IntN(3)))
		write(t, file(name), strings.Join(lines, ""))
	}
	number := 0
	commit := func(about string) {
		runGit(t, dir, "add", "-A")
		number++
		when := fmt.Sprintf("2026-03-%02dT10:%02d:00+0%d00", 1+number/24, number%24, number%5)
		cmd := exec.Command("git", "-C", dir, "-c", "user.name=Zo\u00eb Tester", "-c", "user.email=zoe@example.org",
			"commit", "-q", "--date", when, "-m", fmt.Sprintf("part%d: %s\n\nIt was needed.\n", number%3, about))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"a.c", "b.c", "lib/c.c", "lib/d \u00e4.c"} {
		put(name, text(name, 80))
	}
	commit("start")
	for i := range 12 {
		moved := fmt.Sprintf("lib/moved%d.c", i)
		put(moved, text(moved, 30))
		edit("a.c")
		commit("add a file and change another")
		ok(os.Rename(file(moved), file(moved+".new")))
		edit(moved + ".new")
		commit("rename a file")
		ok(os.Chmod(file("b.c"), fs.FileMode(0o644|i%2*0o111)^0o111))
		edit("lib/c.c")
		commit("change a mode")
		ok(os.Symlink(moved+".new", file(fmt.Sprintf("link%d", i))))
		commit("add a link")
		data := make([]byte, 700)
		for k := range data {
			data[k] = byte(rng.IntN(256))
		}
		put("pic.png", "\x00"+string(data))
		put(fmt.Sprintf("empty/%d", i), "")
		commit("change a picture, add an empty file")
		put("end", text("end", 3)+fmt.Sprintf("no newline %d", i))
		runGit(t, dir, "update-index", "--add", "--cacheinfo", fmt.Sprintf("160000,%040x,module", i+1))
		ok(os.MkdirAll(file("module"), 0o755))
		commit("move a submodule")
		ok(os.Remove(file(moved + ".new")))
		edit("b.c")
		commit("delete a file")
		// A branch that starts here and comes back three commits later.
		runGit(t, dir, "checkout", "-q", "-b", fmt.Sprintf("topic%d", i))
		for range 1 + rng.IntN(3) {
			edit("lib/d \u00e4.c")
			commit("work on a topic")
		}
		runGit(t, dir, "checkout", "-q", "main")
		for range 3 {
			edit("a.c")
			edit("lib/d \u00e4.c")
			commit("go on")
		}
		if out, err := exec.Command("git", "-C", dir, "-c", "user.name=Z", "-c", "user.email=z@example.org",
			"merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", fmt.Sprintf("topic%d", i)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return file(".git")
}

func applyCases(t *testing.T, dir, repo string) {
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []applyCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("only %d cases in %s", len(cases), dir)
	}
	kinds := map[string]int{}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			kinds[c.Variant]++
			c.check(t, filepath.Join(dir, c.Mbox), repo)
		})
	}
	t.Logf("%d cases: %v", len(cases), kinds)
}

func (c *applyCase) check(t *testing.T, mailbox, repo string) {
	var out, errs bytes.Buffer
	term := &terminal{stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	mail := &input.Mail{Files: []string{mailbox}, Problems: &errs}
	status := run([]string{"apply", mailbox, "--repo", repo, "--base", c.ApplyOnto, "--json"}, term)
	var st tree.Stack
	if err := json.Unmarshal(out.Bytes(), &st); err != nil {
		t.Fatalf("status %d: %v\n%s%s", status, err, out.String(), errs.String())
	}
	var got []string
	made, last := 0, c.ApplyOnto
	for _, s := range st.Steps {
		// git am makes no commit of a patch that is there already.
		if s.Commit != last {
			got = append(got, s.Tree)
			made++
		}
		last = s.Commit
	}
	want, ok := c.want()
	if c.keepsCR(t, mailbox) {
		want = want[:0]
		for _, p := range c.Patches {
			want = append(want, p.Tree)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("applied %d of %d, the oracle %d; conflict %+v", len(got), c.Total, len(want), st.Conflict)
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("first other tree: patch %d: %s, the oracle %s, notes %v", i+1, got[i], want[i], st.Steps[i].Notes)
				break
			}
		}
	}
	if ok != (st.Conflict == nil) {
		t.Errorf("the oracle ok=%v, conflict %+v", ok, st.Conflict)
	}
	if wantStatus := map[bool]int{true: statusDone, false: statusSeries}[ok && len(c.Missing) == 0]; status != wantStatus {
		t.Errorf("status %d, want %d: %s", status, wantStatus, errs.String())
	}
	s, err := mail.Series(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.checkPatches(t, s.Series)
}

// keepsCR knows a mailbox in which only some lines end in CR LF, as those of a
// patch to such a file do. git am takes every CR there for one of the transport,
// unless it is told to keep them; we keep them, and reach the tree of the commit
// that the mail was made from.
func (c *applyCase) keepsCR(t *testing.T, mailbox string) bool {
	data, err := os.ReadFile(mailbox)
	if err != nil {
		t.Fatal(err)
	}
	ends := bytes.Count(data, []byte("\r\n"))
	return c.Import == nil && c.Am.OK && ends > 0 && ends < bytes.Count(data, []byte("\n")) && c.Variant != "crlf"
}

func (c *applyCase) checkPatches(t *testing.T, s *mbox.Series) {
	if s.Total != c.Total || c.Version > 0 && s.Version != c.Version || !slices.Equal(s.Missing, c.Missing) {
		t.Errorf("series of %d, version %d, missing %v; want %d, %d, %v", s.Total, s.Version, s.Missing, c.Total, c.Version, c.Missing)
	}
	for _, p := range s.Patches {
		w := c.Patches[p.N-1]
		author, date, zone := mbox.Address{Name: w.Name, Email: w.Email}, time.Time{}, ""
		if c.Import != nil {
			name, rest, _ := strings.Cut(w.Author, " <")
			author = mbox.Address{Name: name, Email: strings.TrimSuffix(rest, ">")}
			var sec, west int64
			if _, err := fmt.Sscan(w.HgDate, &sec, &west); err != nil {
				t.Fatal(err)
			}
			date = time.Unix(sec, 0)
			zone = time.Unix(0, 0).In(time.FixedZone("", int(-west))).Format("-0700")
		} else {
			d, err := time.Parse(time.RFC3339, w.Date)
			if err != nil {
				t.Fatal(err)
			}
			date, zone = d, d.Format("-0700")
		}
		if c.Variant == "hg-email-plain" {
			// Such a mail says nothing of the changeset but its message.
			author, date, zone = mbox.Address{Name: "Case Maker", Email: "cases@example.com"}, p.Date, p.Date.Format("-0700")
		}
		type row struct {
			author        mbox.Address
			date          string
			zone, subject string
		}
		subject := withoutTag(w.Subject)
		if c.Variant == "hg-email-plain" {
			subject = strings.TrimSuffix(subject, ".") // which hg leaves out of a mail's subject
		}
		a := row{author, strconv.FormatInt(date.Unix(), 10), zone, subject}
		b := row{p.Author, strconv.FormatInt(p.Date.Unix(), 10), p.Date.Format("-0700"), withoutTag(p.Subject)}
		if d := cmp.Diff(a, b, cmp.AllowUnexported(row{})); d != "" {
			t.Errorf("patch %d (-want +got):\n%s", p.N, d)
		}
	}
}

// withoutTag is the subject of a commit without a tag of the patch that it was
// once made from, which is lost on the second way through the mail.
func withoutTag(subject string) string {
	for strings.HasPrefix(subject, "[PATCH") {
		_, rest, ok := strings.Cut(subject, "]")
		if !ok {
			break
		}
		subject = strings.TrimSpace(rest)
	}
	return strings.Join(strings.Fields(subject), " ")
}
