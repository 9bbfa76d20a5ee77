package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// letter is a mail of an archive's thread.
type letter struct {
	id, re, subject string
	minute          int // since the first, when it was received
	gone            bool
}

func (l letter) String() string {
	re := ""
	if l.re != "" {
		re = "In-Reply-To: <" + l.re + ">\nReferences: <" + l.re + ">\n"
	}
	return fmt.Sprintf("From: A U Thor <author@example.com>\nMessage-ID: <%s>\n%sSubject: %s\nDate: Mon, 6 May 2024 10:00:00 +0000\n\ntext of %[1]s\nFrom now on\n", l.id, re, l.subject)
}

// box packs mails as a public-inbox sends them.
func box(t *testing.T, letters ...letter) []byte {
	t.Helper()
	var messages []*mbox.Message
	for _, l := range letters {
		messages = append(messages, &mbox.Message{Raw: []byte(l.String())})
	}
	var plain bytes.Buffer
	if err := mbox.Write(&plain, messages...); err != nil {
		t.Fatal(err)
	}
	return []byte(pack(plain.String()))
}

// inbox is a public-inbox over HTTP as far as threads go.
func inbox(t *testing.T) *httptest.Server {
	thread := box(t, letter{id: "1/a+b@example.org", subject: "[PATCH 0/1] x"}, letter{id: "2@example.org", re: "1/a+b@example.org", subject: "[PATCH 1/1] y"})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/dev/1%2Fa+b@example.org/t.mbox.gz", "/dev/2@example.org/t.mbox.gz":
			w.Header().Set("Content-Type", "application/gzip")
			w.Write(thread)
		case "/r/2@example.org/t.mbox.gz":
			http.Redirect(w, r, "/dev/2@example.org/t.mbox.gz", http.StatusFound)
		case "/dev/cut@example.org/t.mbox.gz":
			w.Header().Set("Content-Length", fmt.Sprint(len(thread)))
			w.Write(thread[:len(thread)/2])
		case "/dev/page@example.org/t.mbox.gz":
			io.WriteString(w, "<html>Are you a robot?</html>")
		case "/dev/odd@example.org/t.mbox.gz":
			w.Header().Set("Content-Type", "application/gzip")
			io.WriteString(w, pack("no mail at all\n"))
		case "/dev/empty@example.org/t.mbox.gz":
			w.Header().Set("Content-Type", "application/gzip")
		case "/dev/broken@example.org/t.mbox.gz":
			w.Header().Set("Content-Type", "application/gzip")
			io.WriteString(w, "\x1f\x8bnot gzip")
		case "/dev/busy@example.org/t.mbox.gz":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/dev/secret@example.org/t.mbox.gz":
			w.WriteHeader(http.StatusForbidden)
		case "/dev/bomb@example.org/t.mbox.gz":
			w.Write([]byte(pack("From mboxrd@z Thu Jan  1 00:00:00 1970\n" + mail("x") + strings.Repeat("0123456789\n", 100_000))))
		case "/dev/hang@example.org/t.mbox.gz":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestArchiveHTTP(t *testing.T) {
	server := inbox(t)
	both := []string{"[PATCH 0/1] x", "[PATCH 1/1] y"}
	for _, tc := range []struct {
		name, archive, message string // BASE is the server's address
		options                ArchiveOptions
		subjects               []string
		err                    string
		mend                   bool // the user can mend it
	}{
		{name: "a Message-ID", archive: "BASE/dev", message: "2@example.org", subjects: both},
		{name: "in <>", archive: "BASE/dev/", message: " <2@example.org>", subjects: both},
		{name: "an id that must be escaped", archive: "BASE/dev/?x=1#y", message: "1/a+b@example.org", subjects: both},
		{name: "an address", message: "BASE/dev/2@example.org/", subjects: both},
		{name: "an address of the whole thread", message: "BASE/dev/2%40example.org/T/#u", subjects: both},
		{name: "the thread's mailbox itself", message: "BASE/dev/1%2Fa+b@example.org/t.mbox.gz", subjects: both},
		{name: "a redirection", message: "BASE/r/2@example.org", subjects: both},
		{name: "an address and an archive", archive: "BASE/dev", message: "https://lists.example.org/all/2@example.org/raw", subjects: both},
		{name: "no such message", archive: "BASE/dev", message: "9@example.org", mend: true,
			err: "BASE/dev/9@example.org/t.mbox.gz: the archive has no message <9@example.org> (404 Not Found)"},
		{name: "refused", archive: "BASE/dev", message: "secret@example.org", mend: true,
			err: "BASE/dev/secret@example.org/t.mbox.gz: the archive answered 403 Forbidden"},
		{name: "overloaded", archive: "BASE/dev", message: "busy@example.org",
			err: "fetch BASE/dev/busy@example.org/t.mbox.gz: the archive answered 503 Service Unavailable; try again later"},
		{name: "cut off", archive: "BASE/dev", message: "cut@example.org",
			err: "fetch BASE/dev/cut@example.org/t.mbox.gz: unexpected EOF; try again later"},
		{name: "a web page", archive: "BASE/dev", message: "page@example.org", mend: true,
			err: "BASE/dev/page@example.org/t.mbox.gz: the archive sent a web page and no mailbox: is this the address of a public-inbox?"},
		{name: "no mailbox", archive: "BASE/dev", message: "odd@example.org", mend: true,
			err: "BASE/dev/odd@example.org/t.mbox.gz: not an mbox or mail file"},
		{name: "no gzip", archive: "BASE/dev", message: "broken@example.org", mend: true,
			err: "BASE/dev/broken@example.org/t.mbox.gz: broken gzip file: gzip: invalid header"},
		{name: "nothing", archive: "BASE/dev", message: "empty@example.org"},
		{name: "too much packed", archive: "BASE/dev", message: "2@example.org", options: ArchiveOptions{MaxPacked: 50}, mend: true,
			err: "BASE/dev/2@example.org/t.mbox.gz: more than 50 bytes of mail in one thread; save the mails that matter and name the file"},
		{name: "too much unpacked", archive: "BASE/dev", message: "bomb@example.org", options: ArchiveOptions{MaxUnpacked: 1 << 20}, mend: true,
			err: "BASE/dev/bomb@example.org/t.mbox.gz: more than 1 MiB of mail in one thread; save the mails that matter and name the file"},
		{name: "an answer that never ends", archive: "BASE/dev", message: "hang@example.org", options: ArchiveOptions{Client: &http.Client{Timeout: 100 * time.Millisecond}},
			err: "fetch BASE/dev/hang@example.org/t.mbox.gz: no whole answer in time; try again later"},
		{name: "nobody there", archive: "http://127.0.0.1:1/dev", message: "2@example.org",
			err: "fetch http://127.0.0.1:1/dev/2@example.org/t.mbox.gz: dial tcp 127.0.0.1:1: connect: connection refused; try again later"},
		{name: "no Message-ID", archive: "BASE/dev", message: "series.mbox", mend: true, err: "series.mbox: not a Message-ID (want one like 20240501.1@example.org)"},
		{name: "no archive", message: "2@example.org", mend: true, err: "2@example.org: a Message-ID, but no archive to look it up in"},
		{name: "an address without an id", message: "BASE/dev/", mend: true, err: "BASE/dev/: no Message-ID in this address (want https://HOST/LIST/MESSAGE-ID/)"},
		{name: "another protocol", archive: "nntp://example.org", message: "2@example.org", mend: true,
			err: "nntp://example.org: not an archive: want http:// or https://, or a folder with a public-inbox's git epochs"},
		{name: "no host", archive: "https:///dev", message: "2@example.org", mend: true, err: "https:///dev: not an address of an archive (want https://HOST/LIST)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := func(s string) string { return strings.ReplaceAll(s, "BASE", server.URL) }
			subjects, err := all(OpenArchive(t.Context(), base(tc.archive), base(tc.message), tc.options))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(base(tc.err), got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			var input *InputError
			if errors.As(err, &input) != tc.mend {
				t.Errorf("%T for the user to mend: %t, want %t", err, !tc.mend, tc.mend)
			}
			if err == nil {
				if d := cmp.Diff(tc.subjects, subjects); d != "" {
					t.Errorf("mails (-want +got):\n%s", d)
				}
			}
		})
	}
}

// all gives the subjects of a source.
func all(s *Source, err error) (subjects []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		m, p, err := s.Next()
		switch {
		case errors.Is(err, ErrEnd):
			return subjects, nil
		case err != nil:
			return nil, err
		case p != nil:
			return nil, errors.New(p.Position + ": " + p.Error)
		}
		subjects = append(subjects, m.Subject)
	}
}

func TestArchiveInterrupted(t *testing.T) {
	server := inbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenArchive(ctx, server.URL+"/dev", "2@example.org", ArchiveOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

func TestArchiveHidesSecrets(t *testing.T) {
	_, err := OpenArchive(t.Context(), "http://me:password@127.0.0.1:1/dev", "2@example.org", ArchiveOptions{})
	if err == nil || strings.Contains(err.Error(), "password") {
		t.Errorf("error %v", err)
	}
}

func TestNamesMessage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "saved@home")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]bool{
		"1@example.org": true, "<1@example.org>": true, "https://example.org/dev/1@example.org/": true, "http://example.org/": true,
		"-": false, "series.mbox": false, file: false, "a@": false, "@b": false, "a b@c": false, "": false, "main@{1}..topic": true,
	} {
		if got := NamesMessage(in); got != want {
			t.Errorf("%q: %t, want %t", in, got, want)
		}
	}
}

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("git is missing: %v", err)
		}
		t.Skipf("git is missing: %v", err)
	}
}

func git(t testing.TB, stdin io.Reader, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// writeEpoch writes letters into an epoch as public-inbox does: a commit for each,
// with the mail as the file m, or as d where it is taken back.
func writeEpoch(t testing.TB, dir string, letters ...letter) {
	t.Helper()
	git(t, nil, "init", "-q", "--bare", "-b", "master", dir)
	pr, pw := io.Pipe()
	go func() {
		file := func(name, text string) { fmt.Fprintf(pw, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text) }
		for i, l := range letters {
			fmt.Fprintf(pw, "commit refs/heads/master\ncommitter i <i@example.org> %d +0000\ndata 1\nx\n", 1714989600+60*l.minute)
			if i > 0 {
				fmt.Fprint(pw, "D m\nD d\n")
			}
			if l.gone {
				l.gone = false
				file("d", l.String())
			} else {
				file("m", l.String())
			}
		}
		pw.Close()
	}()
	git(t, pr, "-C", dir, "fast-import", "--quiet", "--force")
}

const day = 24 * 60

// talk is an archive with two threads among other mail.
var talk = [][]letter{
	{
		{id: "noise0@x", subject: "noise"},
		{id: "v1.1@x", re: "v1.0@x", subject: "[PATCH 1/2] one", minute: 10}, // before its cover
		{id: "v1.0@x", subject: "[PATCH 0/2] cover", minute: 11},
		{id: "spam@x", re: "v1.0@x", subject: "buy", minute: 12},
		{id: "v1.2@x", re: "v1.0@x", subject: "[PATCH 2/2] two", minute: 12},
		{id: "spam@x", re: "v1.0@x", subject: "buy", minute: 13, gone: true},
		{id: "noise1@x", subject: "noise", minute: 20 * day},
	},
	{
		{id: "r1@x", re: "v1.1@x", subject: "Re: [PATCH 1/2] one", minute: 21 * day},
		{id: "other@x", subject: "[PATCH] other", minute: 22*day + 1},
		{id: "v2.0@x", re: "v1.0@x", subject: "[PATCH v2 0/1] cover", minute: 30 * day},
		{id: "v2.1@x", re: "v2.0@x", subject: "[PATCH v2 1/1] one", minute: 30 * day},
		{id: "r2@x", re: "other@x", subject: "Re: [PATCH] other", minute: 31 * day},
		{id: "lost.r@x", re: "lost@x", subject: "Re: [PATCH] lost", minute: 32 * day},
	},
}

func TestArchiveEpochs(t *testing.T) {
	needGit(t)
	threads := map[string][]string{
		"v1.0@x v1.1@x v1.2@x r1@x v2.0@x v2.1@x": {"[PATCH 1/2] one", "[PATCH 0/2] cover", "[PATCH 2/2] two", "Re: [PATCH 1/2] one", "[PATCH v2 0/1] cover", "[PATCH v2 1/1] one"},
		"other@x r2@x": {"[PATCH] other", "Re: [PATCH] other"},
		"lost.r@x":     {"Re: [PATCH] lost"},
		"noise0@x":     {"noise"},
	}
	for name, paths := range map[string][2]string{
		"as public-inbox keeps it": {"git/0.git", "git/1.git"},
		"as it is cloned":          {"0.git", "1.git"},
		"many epochs":              {"9.git", "10.git"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, letters := range talk {
				writeEpoch(t, filepath.Join(dir, paths[i]), letters...)
			}
			git(t, nil, "init", "-q", "--bare", filepath.Join(dir, filepath.Dir(paths[0]), "11.git")) // just begun
			git(t, nil, "init", "-q", "--bare", filepath.Join(dir, "all.git"))
			for ids, want := range threads {
				for id := range strings.FieldsSeq(ids) {
					got, err := all(OpenArchive(t.Context(), dir, "<"+id+">", ArchiveOptions{}))
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("thread of %s (-want +got):\n%s", id, d)
					}
				}
			}
		})
	}
	t.Run("one epoch", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "lists")
		writeEpoch(t, dir, talk[1]...)
		git(t, nil, "-C", dir, "repack", "-qad")
		got, err := all(OpenArchive(t.Context(), dir, "v2.1@x", ArchiveOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		// The thread's beginning lies in another epoch.
		if d := cmp.Diff([]string{"[PATCH v2 0/1] cover", "[PATCH v2 1/1] one"}, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// TestArchiveEpochsStopInTime has an archive whose older half cannot be read: who
// asks for a thread of the newer half does not notice.
func TestArchiveEpochsStopInTime(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	for i, letters := range talk {
		writeEpoch(t, fmt.Sprintf("%s/%d.git", dir, i), letters...)
	}
	if err := os.RemoveAll(filepath.Join(dir, "0.git/objects/pack")); err != nil {
		t.Fatal(err)
	}
	loose, err := filepath.Glob(filepath.Join(dir, "0.git/objects/[0-9a-f][0-9a-f]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range loose {
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
	}
	got, err := all(OpenArchive(t.Context(), dir, "other@x", ArchiveOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"[PATCH] other", "Re: [PATCH] other"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := OpenArchive(t.Context(), dir, "v2.1@x", ArchiveOptions{}); err == nil || !strings.Contains(err.Error(), "broken archive") {
		t.Errorf("error %v, want that the archive is broken where the thread goes on", err)
	}
}

// BenchmarkArchiveEpochs looks a thread up that began 50,000 mails ago.
func BenchmarkArchiveEpochs(b *testing.B) {
	needGit(b)
	const mails = 50_000
	letters := []letter{{id: "first@x", subject: "[PATCH] x"}}
	for i := range mails {
		letters = append(letters, letter{id: fmt.Sprintf("m%d@x", i), re: fmt.Sprintf("m%d@x", i/4*4), subject: strings.Repeat("s", 200), minute: 2*day + i})
	}
	dir := b.TempDir()
	writeEpoch(b, filepath.Join(dir, "0.git"), letters...)
	for b.Loop() {
		s, err := OpenArchive(b.Context(), dir, "first@x", ArchiveOptions{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
	b.ReportMetric(float64(mails)*float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}

func TestArchiveEpochsRefuse(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	writeEpoch(t, path("list/0.git"), talk[0]...)
	writeEpoch(t, path("damaged/0.git"), talk[0]...)
	if err := os.RemoveAll(path("damaged/0.git/objects")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path("damaged/0.git/objects"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path("nothing"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	tip := strings.TrimSpace(git(t, nil, "-C", path("list/0.git"), "rev-parse", "master"))
	for _, tc := range []struct{ archive, want string }{
		{"list", "list: no message <9@example.org> in this archive (6 messages looked at)"},
		{"damaged", "damaged/0.git: broken archive: commit " + tip[:12] + ": object not found"},
		{"nothing", "nothing: not an archive: no git epochs in it (looked for 0.git and git/0.git)"},
		{"file", "file: not an archive: want a folder with a public-inbox's git epochs (0.git, 1.git, ...), or an address"},
		{"missing", "missing: no such file or directory"},
	} {
		t.Run(tc.archive, func(t *testing.T) {
			_, err := OpenArchive(t.Context(), path(tc.archive), "9@example.org", ArchiveOptions{})
			var input *InputError
			if !errors.As(err, &input) {
				t.Fatalf("error %v, want an InputError", err)
			}
			if d := cmp.Diff(dir+"/"+tc.want, err.Error()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
