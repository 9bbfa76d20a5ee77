package series

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("git is missing: %v", err)
		}
		t.Skipf("git is missing: %v", err)
	}
}

// repository is a git repository in a temporary folder.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

func newRepository(t *testing.T) *repository {
	r := &repository{t: t, dir: t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r *repository) run(stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "TZ=UTC", "LC_ALL=C",
		"GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=author@example.com", "GIT_COMMITTER_NAME=C O Mitter", "GIT_COMMITTER_EMAIL=committer@example.com")
	cmd.Env = append(cmd.Env, r.env...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.run(nil, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *repository) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) commit(author, message string) {
	r.t.Helper()
	r.git("add", "-A")
	name, email, _ := strings.Cut(author, "|")
	n := len(strings.Fields(r.git("rev-list", "--all")))
	r.env = []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + strconv.Itoa(1700000000+n*4000) + " +0530"}
	if _, err := r.run([]byte(message), "commit", "-q", "--cleanup=verbatim", "-F", "-"); err != nil {
		r.t.Fatal(err)
	}
	r.env = nil
}

func lines(n int, format string) string {
	var s strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&s, format+"\n", i)
	}
	return s.String()
}

// workbench makes commits that mail treats differently.
func workbench(t *testing.T) *repository {
	r := newRepository(t)
	r.write("tool.c", lines(40, "line %d of the tool"))
	r.write("old/name.txt", lines(20, "text %d"))
	r.write("gone.txt", "to be removed\n")
	r.write("dos.txt", strings.ReplaceAll(lines(12, "dos %d"), "\n", "\r\n"))
	r.write("latin.txt", "caf\xe9 one\ncaf\xe9 two\n")
	r.write("data.bin", "\x00\x01\x02"+strings.Repeat("\xff\x00binary", 200))
	r.write("end.txt", "no newline at the end")
	r.commit("A U Thor|author@example.com", "base\n")
	r.git("tag", "base")

	r.write("tool.c", strings.Replace(lines(40, "line %d of the tool"), "line 7 of", "line seven of", 1))
	r.commit("A U Thor|author@example.com", "tool: count in words\n\nThe seventh line says so.\n\nSigned-off-by: A U Thor <author@example.com>\n")

	r.write("tool.c", strings.Replace(lines(40, "line %d of the tool"), "line 30 of", "line thirty of", 1))
	r.commit("Žofie Nováková|zofie@example.cz", "nástroj: přidej řádek, který je delší než co se vejde na jeden řádek hlavičky zprávy\n\nTělo s háčky: ěščřž.\n")

	r.git("mv", "old/name.txt", "new name.txt")
	r.git("rm", "-q", "gone.txt")
	r.write("empty", "")
	r.commit("Dr. O'Neil, Jr.|oneil@example.com", "[area] move files [again]\n\n  indented first line\n\nFrom here on nothing is old.\n>From quoted stays.\n")

	r.write("dos.txt", strings.ReplaceAll(strings.Replace(lines(12, "dos %d"), "dos 5", "dos five", 1), "\n", "\r\n"))
	r.commit("A U Thor|author@example.com", "dos: five\n")

	r.write("latin.txt", "caf\xe9 one\ncaf\xe9 three\n")
	r.write("data.bin", "\x00\x01\x03"+strings.Repeat("\xff\x00binarz", 200))
	r.commit("A U Thor|author@example.com", "bytes: keep them\n\nBinary and latin1 go unharmed.\n")

	r.write("end.txt", "no newline at the end, longer")
	r.write("dir/ünïcode.txt", "content\n")
	if err := os.Chmod(filepath.Join(r.dir, "tool.c"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.commit("A U Thor|author@example.com", "end: no newline, a mode and a name\n\nA text with a diff in it, indented:\n\n    diff --git a/x b/x\n    --- a/x\n\nand - - dashes.\n")
	return r
}

// applied is one step as git recorded it.
type applied struct{ Author, Date, Message, Tree string }

func (r *repository) steps() []applied {
	var out []applied
	for _, id := range strings.Fields(r.git("rev-list", "--reverse", "base..HEAD")) {
		out = append(out, applied{
			Author:  strings.TrimSpace(r.git("show", "-s", "--format=%an <%ae>", id)),
			Date:    strings.TrimSpace(r.git("show", "-s", "--format=%ad", "--date=rfc", id)),
			Message: r.git("show", "-s", "--format=%B", id),
			Tree:    strings.TrimSpace(r.git("show", "-s", "--format=%T", id)),
		})
	}
	return out
}

// TestAgainstGitAm reads what git format-patch writes and holds authors, dates,
// messages and changes against what git am makes of the same mailbox.
func TestAgainstGitAm(t *testing.T) {
	needGit(t)
	for _, tc := range []struct {
		name string
		args []string
		am   []string
	}{
		{name: "plain"},
		{name: "cover and version", args: []string{"--cover-letter", "-v3", "--base=base"}},
		{name: "numbered one by one", args: []string{"-n", "--subject-prefix=RFC PATCH net-next"}},
		{name: "own from", args: []string{"--from=Sender <sender@example.org>", "--thread"}},
		{name: "thread of several authors", args: []string{"--thread"}},
		{name: "cover over several authors", args: []string{"--thread", "--cover-letter", "-v2"}},
		{name: "deep thread", args: []string{"--thread=deep"}},
		{name: "attach", args: []string{"--attach"}},
		{name: "inline", args: []string{"--inline"}},
		{name: "full index", args: []string{"--full-index", "--no-renames"}},
		{name: "signature", args: []string{"--signature=--- a/x", "--no-stat"}},
		{name: "mboxrd", args: []string{"--pretty=mboxrd"}, am: []string{"--patch-format=mboxrd"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := workbench(t)
			args := append([]string{"format-patch", "--stdout", "--binary"}, tc.args...)
			data := []byte(r.git(append(args, "base..main")...))

			// What git am makes of it; --keep-cr since this mailbox has not been
			// through a mailer.
			r.git("checkout", "-q", "-b", "am", "base")
			// The cover is no patch.
			patches := data
			if i := bytes.Index(data, []byte(" 0/")); i >= 0 && bytes.Contains(data[:i+200], []byte("*** SUBJECT")) {
				next := bytes.Index(data[i:], []byte("\nFrom "))
				patches = data[i+next+1:]
			}
			if _, err := r.run(patches, append(append([]string{"am", "-q", "--keep-non-patch", "--keep-cr"}, tc.am...), "-")...); err != nil {
				t.Fatal(err)
			}
			want := r.steps()

			c := NewCollector(Options{})
			reader := mbox.NewReader(bytes.NewReader(data), "test.mbox")
			if len(tc.am) > 0 {
				reader.Format = mbox.MboxRD
			}
			for {
				m, p, err := reader.Next()
				if err == io.EOF {
					break
				}
				if err != nil || p != nil {
					t.Fatal(p, err)
				}
				c.Add(m)
			}
			l := must(c.Listing())
			if len(l.Series) != 1 || len(l.Skipped) != 0 || len(l.Problems) != 0 {
				t.Fatalf("listing: %d series, skipped %v, problems %v", len(l.Series), l.Skipped, l.Problems)
			}
			s := l.Series[0]
			if !s.Complete || s.Total != len(want) {
				t.Errorf("%d of %d patches, want %d; missing %v", s.Received, s.Total, len(want), s.Missing)
			}
			if hasCover := s.Cover != nil; hasCover != (len(patches) != len(data)) {
				t.Errorf("cover: %t", hasCover)
			}
			r.git("checkout", "-q", "-b", "ours", "base")
			var got []applied
			for _, p := range s.Patches {
				if _, err := r.run(p.Diff, "apply", "--index", "--whitespace=nowarn"); err != nil {
					t.Fatal(err)
				}
				got = append(got, applied{
					Author:  p.Author.String(),
					Date:    p.Date.Format("Mon, 2 Jan 2006 15:04:05 -0700"),
					Message: p.Message + "\n",
					Tree:    strings.TrimSpace(r.git("write-tree")),
				})
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("git am and we differ (-git +ours):\n%s", d)
			}
			if tc.name == "cover and version" {
				base := strings.TrimSpace(r.git("rev-parse", "base"))
				if s.Version != 3 || s.Base == nil || s.Base.Commit != base || s.Base.How != mbox.HowBaseCommit {
					t.Errorf("version %d, base %+v, want 3, %s", s.Version, s.Base, base)
				}
			}
		})
	}
}

// TestTransferEncodings sends one mail through the encodings that mailers use:
// the patch read from it stays the same.
func TestTransferEncodings(t *testing.T) {
	needGit(t)
	r := workbench(t)
	for _, rev := range []string{"HEAD", "HEAD~1", "HEAD~2", "HEAD~4"} { // HEAD~2 changes a file with CRLF
		data := r.git("format-patch", "--stdout", "--binary", "-1", rev)
		head, body, ok := strings.Cut(data, "\n\n")
		if !ok {
			t.Fatal("no header")
		}
		var kept []string
		for _, line := range strings.Split(head, "\n") {
			if !strings.HasPrefix(line, "Content-") && !strings.HasPrefix(line, "MIME-") {
				kept = append(kept, line)
			}
		}
		head = strings.Join(kept, "\n")
		plain := patch.Find(parse(t, head+"\n\n"+body), patch.Options{}).Patches
		if len(plain) != 1 {
			t.Fatalf("%d patches", len(plain))
		}
		for name, mail := range map[string]string{
			"quoted-printable": head + "\nContent-Transfer-Encoding: quoted-printable\n\n" + quotedPrintable(body),
			"base64":           head + "\nContent-Transfer-Encoding: BASE64\n\n" + wrapBase64(body) + "\n",
			"base64 of CRLF":   head + "\nContent-Transfer-Encoding: base64\n\n" + wrapBase64(strings.ReplaceAll(body, "\n", "\r\n")) + "\n",
			"base64 in CRLF":   strings.ReplaceAll(head+"\nContent-Transfer-Encoding: base64\n\n"+wrapBase64(body)+"\n", "\n", "\r\n"),
			"CRLF":             strings.ReplaceAll(head+"\n\n"+body, "\n", "\r\n"),
			"footer":           head + "\n\n" + body + "_______\ndev mailing list\ndev@lists.example.com\n- a last line\n",
			"flowed":           head + "\nContent-Type: text/plain; format=flowed\n\n" + flowed(body),
			"signed": head + "\nContent-Type: multipart/signed; boundary=\"=-=\"\n\nIgnored.\n--=-=\nContent-Type: text/plain\n\n" + body +
				"\n--=-=\nContent-Type: application/pgp-signature\n\n-----BEGIN PGP SIGNATURE-----\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-----END PGP SIGNATURE-----\n--=-=--\n",
			"attachment": head + "\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: application/octet-stream; name=x.patch\nContent-Disposition: attachment\n" +
				"Content-Transfer-Encoding: base64\n\n" + wrapBase64(data) + "\n--b--\n",
		} {
			t.Run(rev+" "+name, func(t *testing.T) {
				got := patch.Find(parse(t, mail), patch.Options{}).Patches
				if len(got) != 1 {
					t.Fatalf("%d patches", len(got))
				}
				if d := cmp.Diff(plain[0], got[0]); d != "" {
					t.Errorf("(-plain +%s):\n%s", name, d)
				}
			})
		}
	}
}

func parse(t testing.TB, mail string) *mbox.Message {
	t.Helper()
	m, err := mbox.ParseMessage([]byte(mail), "test")
	if err != nil {
		t.Fatal(err)
	}
	return m
}
