package series

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/spill"
)

// readArchive names a mailbox that this binary, started again, reads in place of
// running tests: a process of its own whose memory is that of reading alone.
const readArchive = "PATCHBENCH_READ_ARCHIVE"

func TestMain(m *testing.M) {
	if path := os.Getenv(readArchive); path != "" {
		if err := readAlone(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// readAlone reads, decodes and assembles a mailbox, and prints how many series and
// patches there are and the largest memory that the process had, in KiB.
func readAlone(path string) error {
	debug.SetGCPercent(25) // as bot does
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	kept := spill.New(filepath.Dir(path))
	defer kept.Close()
	c := NewCollector(Options{DropDiffs: true, Keeper: kept})
	r := mbox.NewReader(f, path)
	for {
		m, p, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if p != nil {
			err = c.AddProblem(*p)
		} else {
			err = c.Add(m)
		}
		if err != nil {
			return err
		}
	}
	x := c.Index()
	patches := 0
	for i := range x.Len() {
		s, err := x.Series(i)
		if err != nil {
			return err
		}
		patches += len(s.Patches)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Println(x.Len(), patches, x.SkippedLen()+x.ProblemsLen(), strings.Fields(peak)[0])
	return err
}

// Sizes of the archive that is made of a history.
const (
	archiveMails = 10_000
	archiveBytes = 100 << 20
	inSeries     = 5
)

// makeArchive writes the newest changes of a repository as a mailbox: series of
// five, each mail in reply to the first, at least archiveMails and archiveBytes.
func makeArchive(b *testing.B, repo, path string) (mails int, size int64) {
	b.Helper()
	cmd := exec.Command("git", "-C", repo, "format-patch", "--stdout", "--no-signature", "--no-merges", "--no-numbered",
		"--from=S Ender <sender@example.org>", "-60000", "HEAD")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill() // there may be more changes than needed
		cmd.Wait()
	}()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	in := bufio.NewReaderSize(pipe, 1<<20)
	inHeader := false
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		id := func(n int) string { return fmt.Sprintf("<%d.%d@archive.example.org>", n/inSeries, n%inSeries) }
		switch {
		case bytes.HasPrefix(line, []byte("From ")) && bytes.HasSuffix(line, []byte(" Mon Sep 17 00:00:00 2001\n")) && len(line) == 71:
			if mails >= archiveMails && size >= archiveBytes && mails%inSeries == 0 {
				if err := w.Flush(); err != nil {
					b.Fatal(err)
				}
				return mails, size
			}
			line = append(line, "Message-ID: "+id(mails)+"\n"...)
			if mails%inSeries > 0 {
				line = append(line, "In-Reply-To: "+id(mails-mails%inSeries)+"\n"...)
			}
			mails++
			inHeader = true
		case inHeader && len(line) == 1:
			inHeader = false
		case inHeader && bytes.HasPrefix(line, []byte("Subject: [PATCH] ")):
			line = fmt.Appendf(nil, "Subject: [PATCH %d/%d] %s", (mails-1)%inSeries+1, inSeries, line[len("Subject: [PATCH] "):])
		}
		n, _ := w.Write(line)
		size += int64(n)
	}
	b.Fatalf("the history holds only %d changes, %d MB: a longer one is needed", mails, size>>20)
	return 0, 0
}

// BenchmarkAgainstGit reads, decodes and assembles an archive made of a history,
// and gives the same archive to git mailsplit and each of its mails to git
// mailinfo, which decodes and assembles nothing. The repository is named by
// PATCHBENCH_HISTORY.
func BenchmarkAgainstGit(b *testing.B) {
	repo := os.Getenv("PATCHBENCH_HISTORY")
	if repo == "" {
		b.Skip("PATCHBENCH_HISTORY names no repository with a long history")
	}
	if _, err := exec.LookPath("git"); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	archive := filepath.Join(dir, "archive.mbox")
	mails, size := makeArchive(b, repo, archive)
	binary, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}

	var ours, theirs time.Duration
	var peak int
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), readArchive+"="+archive)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		var found, patches, others, kib int
		if _, err := fmt.Sscan(string(out), &found, &patches, &others, &kib); err != nil {
			b.Fatalf("%q: %v", out, err)
		}
		peak = max(peak, kib)

		split := filepath.Join(dir, "split")
		if err := os.MkdirAll(split, 0o777); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		text, err := exec.Command("git", "mailsplit", "-o"+split, archive).Output()
		if err != nil {
			b.Fatalf("git mailsplit: %v", err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		// A commit message may hold what looks like the start of a mail. A change
		// without a diff is no patch.
		if err != nil || patches+others != n || patches < mails*99/100 || found < mails/inSeries*99/100 || found > mails/inSeries*101/100 {
			b.Errorf("%d series, %d patches and %d others of %d mails; git sees %d", found, patches, others, mails, n)
		}
		for i := 1; i <= n; i++ {
			mail, err := os.Open(fmt.Sprintf("%s/%04d", split, i))
			if err != nil {
				b.Fatal(err)
			}
			info := exec.Command("git", "mailinfo", filepath.Join(dir, "msg"), filepath.Join(dir, "patch"))
			info.Stdin = mail
			if err := info.Run(); err != nil {
				b.Fatalf("git mailinfo: mail %d: %v", i, err)
			}
			mail.Close()
		}
		theirs += time.Since(start)
	}
	n := float64(b.N)
	b.ReportMetric(float64(size)*n/1e6/ours.Seconds(), "MB/s")
	b.ReportMetric(float64(size)*n/1e6/theirs.Seconds(), "git-MB/s")
	ratio := theirs.Seconds() / ours.Seconds()
	b.ReportMetric(ratio, "times-git")
	b.ReportMetric(float64(peak)/1024, "MiB-resident")
	b.ReportMetric(float64(mails), "mails")
	b.ReportMetric(float64(size)/1e6, "MB")
	if ratio < 10 {
		b.Errorf("%.1f times as fast as git, want 10", ratio)
	}
	if peak > 128<<10 {
		b.Errorf("%d KiB resident, want 128 MiB at most", peak)
	}
}
