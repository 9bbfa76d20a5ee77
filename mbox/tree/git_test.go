package tree_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"patchbench/mbox"
)

// needGit skips a test where there is no git to compare with. In CI it fails.
func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed")
		}
		t.Skip("git, the oracle, is not installed")
	}
}

// gitEnv keeps the user's configuration out of the oracle.
var gitEnv = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C", "TZ=UTC",
	"GIT_AUTHOR_NAME=Ada Test", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
	"GIT_COMMITTER_NAME=Ada Test", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=1700000000 +0100")

// tryGit runs git in dir and gives what it printed.
func tryGit(dir string, stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = gitEnv
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// newRepo makes an empty repository with a work tree.
func newRepo(t testing.TB) string {
	t.Helper()
	needGit(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	return dir
}

// put writes files of a work tree; "" removes one.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if text == "" {
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// commit records all of the work tree and gives the commit's id.
func commit(t testing.TB, dir, message string) string {
	t.Helper()
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return git(t, dir, "rev-parse", "HEAD")
}

var numbered = regexp.MustCompile(`\[[^]]*?(\d+)/(\d+)\]`)

// series reads a mailbox with git's own mailsplit and mailinfo.
func series(t testing.TB, box []byte, options ...string) *mbox.Series {
	t.Helper()
	dir := t.TempDir()
	out, err := tryGit(dir, box, append(append([]string{"mailsplit"}, options...), "-o"+dir)...)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	s := &mbox.Series{MessageID: "test", Version: 1}
	for i := 1; i <= count; i++ {
		raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%04d", i)))
		if err != nil {
			t.Fatal(err)
		}
		raw = append(bytes.TrimRight(raw, "\n"), '\n')
		n, total := i, count
		head, _, _ := strings.Cut(string(raw), "\n\n")
		head = strings.ReplaceAll(head, "\n ", " ")
		if m := numbered.FindStringSubmatch(head); m != nil {
			n, _ = strconv.Atoi(m[1])
			total, _ = strconv.Atoi(m[2])
		}
		s.Total = total
		if n == 0 || slices.ContainsFunc(s.Patches, func(p mbox.Patch) bool { return p.N == n }) {
			continue
		}
		info, err := tryGit(dir, raw, "mailinfo", "msg", "patch")
		if err != nil {
			t.Fatal(err)
		}
		p := mbox.Patch{N: n}
		for line := range strings.Lines(info) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch key {
			case "Author":
				p.Author.Name = value
			case "Email":
				p.Author.Email = value
			case "Subject":
				p.Subject = value
			case "Date":
				for _, form := range []string{"Mon, _2 Jan 2006 15:04:05 -0700", time.RFC1123Z} {
					if d, err := time.Parse(form, value); err == nil {
						p.Date = d
					}
				}
			}
		}
		msg, err := os.ReadFile(filepath.Join(dir, "msg"))
		if err != nil {
			t.Fatal(err)
		}
		p.Message = strings.TrimRight(p.Subject+"\n\n"+string(msg), "\n") + "\n"
		if p.Diff, err = os.ReadFile(filepath.Join(dir, "patch")); err != nil {
			t.Fatal(err)
		}
		s.Patches = append(s.Patches, p)
	}
	slices.SortFunc(s.Patches, func(a, b mbox.Patch) int { return a.N - b.N })
	return s
}
