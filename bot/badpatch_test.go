package main

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBadPatches gives the command every hostile or broken patch of the shared
// list (kind "patch" of bad-inputs.json) and holds it to what the list says, and
// to a bound of processor time and of memory.
func TestBadPatches(t *testing.T) {
	needTool(t, "git")
	bot, dir := buildBot(t), t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	runGit(t, repo, "init", "-q", "-b", "main")
	write(t, filepath.Join(repo, "a.c"), "one\ntwo\nthree\nfour\nfive\n")
	write(t, filepath.Join(repo, "Makefile"), "CFLAGS = -O0\n")
	write(t, filepath.Join(repo, ".patchbench.toml"), "[[benchmark]]\nname = \"read\"\nrun = \"cat a.c\"\n")
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")

	create := func(name string) string {
		return fmt.Sprintf("diff --git a/%s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+evil\n", name)
	}
	quoted := func(name string) string {
		return fmt.Sprintf("diff --git \"a/%s\" \"b/%[1]s\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/%[1]s\"\n@@ -0,0 +1 @@\n+evil\n", name)
	}
	link := "diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 @@\n+" + dir + "/outside\n\\ No newline at end of file\n"
	edit := "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n"
	id := strings.TrimSpace(runGit(t, repo, "rev-parse", "HEAD:a.c"))
	commit := strings.Repeat("0123456789", 4)
	cases := []badPatch{
		{id: "P01", diffs: []string{create("../../etc/x")}, want: `path "../../etc/x" leaves the repository`},
		{id: "P03", diffs: []string{create(".git/hooks/post-checkout")}, want: `path component ".git" is reserved`},
		{id: "P04", diffs: []string{create(".GIT/config")}, want: `".GIT" is reserved`},
		{id: "P04", diffs: []string{create("sub/.Git/config")}, want: `".Git" is reserved`},
		{id: "P06", diffs: []string{quoted(`.g\342\200\214it/config`)}, want: `is reserved`},
		{id: "P06", diffs: []string{quoted(`.git\357\273\277/config`)}, want: `is reserved`},
		{id: "P07", diffs: []string{quoted(`a\\..\\..\\x`)}, want: `holds a backslash`},
		{id: "P07", diffs: []string{quoted(`C:\\x`)}, want: `backslash|drive letter`},
		{id: "P09", diffs: []string{link, create("out/evil")}, want: `(?s)^base.*  1 commit.*  2 does not apply.*"out" is a symbolic link`},
		{id: "P10", diffs: []string{link + create("out/f")}, want: `out is both a file and a directory`},
		{id: "P12", done: true, diffs: []string{"diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit " + commit + "\n"},
			want: `sub is a submodule: its commit is recorded, its files are not there`},
		{id: "P12", args: []string{"eval"}, diffs: []string{"diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit " + commit + "\n"},
			status: -1, want: `not evaluated: submodule change`, sandbox: true},
		{id: "P13", done: true, diffs: []string{"diff --git a/.gitmodules b/.gitmodules\nnew file mode 100644\n--- /dev/null\n+++ b/.gitmodules\n@@ -0,0 +1,2 @@\n+[submodule \"p\"]\n+\turl = ext::sh -c 'touch " + dir + "/outside/p'\n"},
			want: `^base(.|\n)*  1 commit`},
		{id: "P15", diffs: []string{strings.Replace(create("x"), "100644", "100777", 1)}, want: `unsupported file mode 100777`},
		{id: "P15", diffs: []string{strings.Replace(create("x"), "100644", "040000", 1)}, want: `unsupported file mode 040000`},
		{id: "P15", diffs: []string{strings.Replace(create("x"), "100644", "100000", 1)}, want: `unsupported file mode 100000`},
		{id: "P16", diffs: []string{"diff --git a/a.c b/../../b.c\nsimilarity index 100%\nrename from a.c\nrename to ../../b.c\n"}, want: `leaves the repository`},
		{id: "P16", diffs: []string{"diff --git a/a.c b/.git/x\nsimilarity index 100%\ncopy from a.c\ncopy to .git/x\n"}, want: `is reserved`},
		{id: "P18", diffs: []string{edit + "@@ -0,0 +0,0 @@\n"}, want: `  1 does not apply(.|\n)*line \d+ of the patch: corrupt hunk`},
		{id: "P18", diffs: []string{edit + "@@ -18446744073709551616 +1 @@\n-one\n+eins\n"}, want: `  1 does not apply(.|\n)*line \d+ of the patch: corrupt hunk`},
		{id: "P19", diffs: []string{edit}, more: func(w io.Writer) { fill(w, "@@ -1 +1 @@\n-a\n+b\n", 200_000) },
			want: `patch has 200000 hunks, limit 20000`},
		{id: "P21", diffs: []string{"diff --git a/z b/z\nnew file mode 100644\nindex 0000000000000000000000000000000000000000.." + commit + "\nGIT binary patch\nliteral 1073741824\n"},
			more: func(w io.Writer) {
				fill(w, "zcmeIu0Sy2E0K%a6Pi+hzh(KY$fB^#r3>YwAz<>b*1`HT5V8DO@0|pEjFkrxd0RsjM\n", 19_000)
			},
			want: `binary patch inflates to 1 GiB, limit 16 MiB`, cpu: 500 * time.Millisecond, resident: 64 << 20},
		{id: "P22", diffs: []string{"diff --git a/z b/z\nnew file mode 100644\nindex 0000000000000000000000000000000000000000.." + commit + "\nGIT binary patch\nliteral 10\n" + zeros(64<<20) + "\nliteral 0\nHcmV?d00001\n\n"},
			want: `binary data longer than declared`},
		{id: "P24", diffs: []string{"diff --git a/a.c b/a.c\nindex " + id + ".." + commit + " 100644\nGIT binary patch\ndelta 5\n" + base85(deflated([]byte{24, 10, 0x91, 200, 10})) + "\ndelta 4\n" + base85(deflated([]byte{10, 24, 0x90, 10})) + "\n"},
			want: `a.c: .*delta`},
		{id: "P25", diffs: []string{edit + "@@ -1 +1 @@\n-one\n+"}, more: func(w io.Writer) { fill(w, strings.Repeat("x", 1000), 50_000) },
			status: statusUsage, want: `longer than|larger than|limit|line of`},
		{id: "P25", diffs: []string{edit + "@@ -1 +1 @@\n-one\n+" + strings.Repeat("x", 3<<20) + "\n"}, status: -1, want: `line longer than 1 MiB|longer than`},
		{id: "P27", diffs: []string{edit + "@@ -1,3 +1,3 @@\n one\n-TWO\n+zwei\n three\n"}, want: `^base [0-9a-f]{40}(.|\n)*  1 does not apply(.|\n)*a.c: hunk 1: line 2: context differs`},
		{id: "P28", cover: true, want: `incomplete: 0 of 3`},
		{id: "P30", args: []string{"eval", "--rounds", "1"}, diffs: []string{"--- a/.patchbench.toml\n+++ b/.patchbench.toml\n@@ -1,3 +1,3 @@\n [[benchmark]]\n-name = \"read\"\n+name = \"other\"\n run = \"cat a.c\"\n"},
			done: true, want: `(?s)edits the benchmark suite: 1 file.*measured\s+with\s+the\s+base\s+suite`, sandbox: true},
		{id: "P31", args: []string{"eval", "--rounds", "1"}, diffs: []string{"--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-CFLAGS = -O0\n+CFLAGS = -O3\n"},
			done: true, want: `build files changed: Makefile`, sandbox: true},
		{id: "P33", from: "=?utf-8?q?Eve_=3Ca=40b=3E=0AX?= <e@example.org>", done: true, diffs: []string{create("x")}, want: `  1 commit`},
	}
	tried := map[string]bool{}
	for i, c := range cases {
		tried[c.id] = true
		t.Run(fmt.Sprint(c.id, "-", i), func(t *testing.T) { c.check(t, bot, dir, repo) })
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if e.Name() != "repo" && !strings.HasSuffix(e.Name(), ".mbox") {
			t.Errorf("%s was made beside the repository and the mails", e.Name())
		}
	}
	text, err := os.ReadFile(filepath.Join(sharedCases(t), "bad-inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ ID, Kind string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, in := range list {
		if in.Kind == "patch" && !tried[in.ID] {
			t.Errorf("%s is in the shared list and not tried here", in.ID)
		}
	}
}

type badPatch struct {
	id       string
	diffs    []string
	more     func(io.Writer) // behind the last diff, written as it is made
	from     string
	cover    bool
	args     []string // "apply" if empty
	sandbox  bool
	done     bool // status 0
	status   int  // else; 0 for statusSeries, -1 for any but statusOurs
	want     string
	cpu      time.Duration // 3 s if 0
	resident int64         // bytes, 160 MiB if 0
}

func (c *badPatch) check(t *testing.T, bot, dir, repo string) {
	if c.sandbox {
		needTool(t, "bwrap")
	}
	mail := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".mbox")
	c.mail(t, mail)
	args := append([]string(nil), c.args...)
	if len(args) == 0 {
		args = []string{"apply"}
	} else {
		args = append(args, "--store", filepath.Join(t.TempDir(), "bot.db"))
	}
	cmd := exec.Command(bot, append(args, mail, "--repo", repo)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	want, status := c.status, cmd.ProcessState.ExitCode()
	switch {
	case c.done:
		want = statusDone
	case want == 0:
		want = statusSeries
	}
	if want >= 0 && status != want || want < 0 && status == statusOurs {
		t.Errorf("status %d, want %d", status, want)
	}
	if !regexp.MustCompile(c.want).Match(out) {
		t.Errorf("want %q in\n%.3000s", c.want, out)
	}
	if bytes.Contains(out, []byte("panic")) || len(out) > 1<<16 {
		t.Errorf("%d bytes of output: %.3000s", len(out), out)
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	mostCPU, most := c.cpu, c.resident
	if mostCPU == 0 {
		mostCPU = 3 * time.Second
	}
	if most == 0 {
		most = 160 << 20
	}
	// A process begins with the peak of the one that started it, this test.
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		t.Fatal(err)
	}
	if !c.sandbox && cpu > mostCPU || use.Maxrss<<10 > max(most, self.Maxrss<<10) {
		t.Errorf("took %v (at most %v) and %d MiB (at most %d)", cpu, mostCPU, use.Maxrss>>10, most>>20)
	}
}

// mail writes the series to a file without ever holding what is large.
func (c *badPatch) mail(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	from := c.from
	if from == "" {
		from = "Eve <eve@example.org>"
	}
	head := func(n, total int) {
		fmt.Fprintf(w, "From e@example.org Mon Nov  2 09:00:00 2026\nFrom: %s\nMessage-ID: <%d@example.org>\nDate: Mon, 2 Nov 2026 09:00:00 +0000\nSubject: [PATCH %d/%d] do it\n\nBecause.\n---\n",
			from, n, n, total)
	}
	if c.cover {
		head(0, 3)
	}
	for i, diff := range c.diffs {
		head(i+1, len(c.diffs))
		io.WriteString(w, diff)
		if i == len(c.diffs)-1 && c.more != nil {
			c.more(w)
		}
		io.WriteString(w, "\n")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func fill(w io.Writer, text string, n int) {
	for range n {
		io.WriteString(w, text)
	}
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

// zeros is a zlib stream of n zero bytes as a patch holds it.
func zeros(n int) string {
	var b bytes.Buffer
	z, _ := zlib.NewWriterLevel(&b, zlib.BestCompression)
	chunk := make([]byte, 1<<16)
	for range n / len(chunk) {
		z.Write(chunk)
	}
	z.Close()
	return base85(b.Bytes())
}

// base85 writes data as git does: lines of up to 52 bytes, each with its length.
func base85(data []byte) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	var out strings.Builder
	for len(data) > 0 {
		line := data[:min(52, len(data))]
		data = data[len(line):]
		if n := len(line); n <= 26 {
			out.WriteByte('A' + byte(n-1))
		} else {
			out.WriteByte('a' + byte(n-27))
		}
		for len(line) > 0 {
			var v uint32
			for i := range 4 {
				v <<= 8
				if i < len(line) {
					v |= uint32(line[i])
				}
			}
			line = line[min(4, len(line)):]
			var five [5]byte
			for i := 4; i >= 0; i-- {
				five[i] = digits[v%85]
				v /= 85
			}
			out.Write(five[:])
		}
		out.WriteByte('\n')
	}
	return out.String()
}
