package series

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// hgRepository has four changes by several people; the first is the base.
type hgRepository struct {
	t   *testing.T
	dir string
}

func newHgRepository(t *testing.T) *hgRepository {
	t.Helper()
	if _, err := exec.LookPath("hg"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("hg is missing: %v", err)
		}
		t.Skipf("hg is missing: %v", err)
	}
	r := &hgRepository{t: t, dir: t.TempDir()}
	r.hg("init", ".")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(user, date, message string) {
		t.Helper()
		r.hg("commit", "-q", "-A", "-u", user, "-d", date, "-m", message)
	}
	write("f", lines(20, "%d"))
	commit("Base <base@example.org>", "1163373400 0", "base")
	write("f", strings.Replace(lines(20, "%d"), "\n5\n", "\nfive\n", 1))
	commit("Jörg Ä <joerg@example.org>", "1163373405 -19800", "five: write it in words\n\nBecause it reads better.\n\n---\nThis line belongs to the message.")
	write("latin.txt", "caf\xe9\n")
	commit("B Author <b@example.org>", "1163373500 25200", "latin: a file that is not UTF-8")
	write("dir with blanks", "x\n\n\ny\n")
	commit("nobody", "1163373600 0", "names: one with blanks, and a subject that is so long that a mailer must fold it at some odd place")
	return r
}

func (r *hgRepository) hg(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("hg", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HGPLAIN=1", "HGRCPATH=/dev/null", "HGENCODING=UTF-8", "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("hg %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

// changed is what Mercurial knows of a change.
type changed struct {
	User, Message, Node, Parent string
	Seconds                     int64
	Offset                      int // east
	Diff                        string
}

func (r *hgRepository) want(git bool) []changed {
	var out []changed
	args := []string{"export", "-r", "1:3"}
	if git {
		args = append(args, "--git")
	}
	exports := strings.Split(r.hg(args...), "# HG changeset patch\n")[1:]
	logs := strings.Split(r.hg("log", "-r", "1:3", "-T", "{author}\x01{desc}\x01{node}\x01{p1node}\x01{date|hgdate}\x02"), "\x02")
	for i, export := range exports {
		f := strings.Split(logs[i], "\x01")
		c := changed{User: f[0], Message: f[1] + "\n", Node: f[2], Parent: f[3], Diff: export[strings.Index(export, "\ndiff -")+1:]}
		var west int
		if _, err := fmt.Sscan(f[4], &c.Seconds, &west); err != nil {
			r.t.Fatal(err)
		}
		c.Offset = -west
		out = append(out, c)
	}
	return out
}

func seen(s mbox.Series) []changed {
	var out []changed
	for _, p := range s.Patches {
		user := p.Author.String()
		if p.Author.Email == "" {
			user = p.Author.Name
		}
		_, offset := p.Date.Zone()
		out = append(out, changed{user, p.Message, p.Node, p.Parent, p.Date.Unix(), offset, string(p.Diff)})
	}
	return out
}

// TestMercurial reads what hg export and hg email write, and holds every patch
// against what hg log knows of the change.
func TestMercurial(t *testing.T) {
	r := newHgRepository(t)
	desc := filepath.Join(t.TempDir(), "desc")
	if err := os.WriteFile(desc, []byte("What they are about.\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	known := map[bool][]changed{false: r.want(false), true: r.want(true)}
	for _, tc := range []struct {
		name  string
		args  []string // of hg email; nil for hg export
		plain bool     // has neither user nor date nor ids
		git   bool
		check func(*testing.T, mbox.Series)
	}{
		{name: "export"},
		{name: "export --git", git: true},
		{name: "email", args: []string{}},
		{name: "email with diff.git", args: []string{"--config", "diff.git=1"}, git: true},
		{name: "email --plain", args: []string{"--plain"}, plain: true},
		{name: "email --attach", args: []string{"--attach"}},
		{name: "email --inline", args: []string{"--inline"}},
		{name: "email --body --attach", args: []string{"--body", "--attach"}},
		{name: "email --intro", args: []string{"--intro", "--subject", "numbers: in words", "--desc", desc}, check: func(t *testing.T, s mbox.Series) {
			if s.Cover == nil || s.Cover.Subject != "numbers: in words" || !strings.Contains(s.Cover.Body, "What they are about.") {
				t.Errorf("cover %+v", s.Cover)
			}
		}},
		{name: "email --attach --intro", args: []string{"--attach", "--intro", "--subject", "numbers", "--desc", desc}, check: func(t *testing.T, s mbox.Series) {
			if s.Cover == nil {
				t.Error("no cover")
			}
		}},
		{name: "email --flag", args: []string{"--flag", "V3", "--flag", "STABLE"}, check: func(t *testing.T, s mbox.Series) {
			if d := cmp.Diff([]string{"STABLE"}, s.Tags); d != "" || s.Version != 3 {
				t.Errorf("version %d, tags (-want +got):\n%s", s.Version, d)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var box string
			if tc.args == nil {
				args := []string{"export", "-r", "1:3"}
				if tc.git {
					args = append(args, "--git")
				}
				box = r.hg(args...)
			} else {
				file := filepath.Join(t.TempDir(), "out.mbox")
				r.hg(append([]string{"--config", "extensions.patchbomb=", "email", "-q", "-y", "-r", "1:3", "--from", "L Ead <lead@example.org>",
					"--to", "dev@lists.example.org", "-m", file}, tc.args...)...)
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				box = string(data)
			}
			l := listing(readBox(t, box))
			if len(l.Series) != 1 || len(l.Skipped) != 0 || len(l.Problems) != 0 {
				t.Fatalf("%d series, skipped %v, problems %v", len(l.Series), l.Skipped, l.Problems)
			}
			s := l.Series[0]
			if !s.Complete || s.Total != 3 {
				t.Errorf("%d of %d patches, missing %v", s.Received, s.Total, s.Missing)
			}
			want, got := slices.Clone(known[tc.git]), seen(s)
			if tc.plain {
				for i := range want {
					want[i].User, want[i].Parent = "L Ead <lead@example.org>", ""
					want[i].Seconds, want[i].Offset = got[i].Seconds, got[i].Offset
					if age := time.Since(s.Patches[i].Date); age < -time.Hour || age > time.Hour {
						t.Errorf("patch %d dates from %v", i+1, s.Patches[i].Date)
					}
				}
			} else if s.Base == nil || s.Base.Commit != want[0].Parent || s.Base.How != mbox.HowParentNode {
				t.Errorf("base %+v, want %s", s.Base, want[0].Parent)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-hg +ours):\n%s", d)
			}
			for _, p := range s.Patches {
				if p.Style != mbox.StyleHg {
					t.Errorf("style %s, want %s", p.Style, mbox.StyleHg)
				}
			}
			if tc.check != nil {
				tc.check(t, s)
			}
		})
	}
}

// TestMercurialResend sends the same changes twice: the second time with other
// Message-IDs and dates, and the same nodes.
func TestMercurialResend(t *testing.T) {
	r := newHgRepository(t)
	box := ""
	for range 2 {
		box += r.hg("export", "-r", "1:2")
	}
	var messages []*mbox.Message
	for i, m := range readBox(t, box) {
		raw := fmt.Sprintf("From: lead@example.org\nMessage-ID: <%d@x>\nDate: Wed, 1 May 2024 10:%02d:00 +0000\nSubject: [PATCH %d of 2] x%d\n\n%s", i, 30*(i/2)+i, i%2+1, i%2+1, m.Raw)
		messages = append(messages, parse(t, raw))
	}
	if d := cmp.Diff([]string{"0@x v1 2/2 1=0@x 2=1@x", "2@x v1 2/2 after 0@x 1=2@x 2=3@x"}, outline(listing(messages))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func readBox(t testing.TB, box string) []*mbox.Message {
	t.Helper()
	var out []*mbox.Message
	r := mbox.NewReader(strings.NewReader(box), "box")
	for {
		m, p, err := r.Next()
		if err != nil {
			return out
		}
		if p != nil {
			t.Fatalf("%s: %s", p.Position, p.Error)
		}
		out = append(out, m)
	}
}
