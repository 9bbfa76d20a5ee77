package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"patchbench/bot/input"
	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// BenchmarkApply measures the command against git am on the same series, one
// after the other in each of some rounds, and says how many times as fast it is;
// all trees must be those of git am. PATCHBENCH_APPLY_REPO names a repository
// from whose history the series of 20 to 40 patches are made; the large one is
// generated. Run it with -benchtime 1x.
func BenchmarkApply(b *testing.B) {
	for _, tool := range []string{"git"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skip(err)
		}
	}
	b.Run("history", func(b *testing.B) {
		repo := os.Getenv("PATCHBENCH_APPLY_REPO")
		if repo == "" {
			b.Skip("PATCHBENCH_APPLY_REPO names no repository")
		}
		for _, s := range stretches(b, repo, 3) {
			b.Run(fmt.Sprint(s.patches, "-patches"), func(b *testing.B) { against(b, repo, s, 5) })
		}
	})
	b.Run("80000-files", func(b *testing.B) {
		repo, s := large(b)
		against(b, repo, s, 2) // git am takes minutes for it on a busy machine
	})
}

// posted is a series in a mailbox, with the commits that it was made from.
type posted struct {
	base, tip string
	patches   int
	mailbox   string
}

// limits that against holds the command to.
const (
	leastProcess = 3.0       // times git am, from the process's start to its exit
	leastOpen    = 6.0       // times git am, in a repository that is open
	mostResident = 200 << 20 // bytes
	mostUpdate   = 10 * time.Millisecond
)

func against(b *testing.B, repo string, s posted, rounds int) {
	bot := buildBot(b)
	clone := b.TempDir()
	git := func(args ...string) []byte {
		b.Helper()
		cmd := exec.Command("git", append([]string{"-C", clone, "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "gc.auto=0"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	if out, err := exec.Command("git", "clone", "-q", "--shared", "--no-checkout", repo, clone).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	git("checkout", "-q", "--detach", s.base)
	series := seriesOf(b, s.mailbox)
	var am, process, open, update []time.Duration
	var resident int64
	for b.Loop() {
		for range rounds {
			git("checkout", "-q", "-f", "--detach", s.base)
			start := time.Now()
			git("am", "-q", s.mailbox)
			am = append(am, time.Since(start))
			want := strings.Fields(string(git("log", "--reverse", "--format=%T", s.base+"..HEAD")))

			var out bytes.Buffer
			cmd := exec.Command(bot, "apply", s.mailbox, "--repo", repo, "--base", s.base, "--json")
			cmd.Stdout = &out
			start = time.Now()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			process = append(process, time.Since(start))
			resident = max(resident, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
			var st tree.Stack
			if err := json.Unmarshal(out.Bytes(), &st); err != nil {
				b.Fatal(err)
			}
			var got []string
			for _, step := range st.Steps {
				got = append(got, step.Tree)
			}
			if !slices.Equal(want, got) {
				b.Fatalf("trees %v, git am %v", got, want)
			}
			took, next := applyOpen(b, repo, s, series, len(am) == 1)
			open, update = append(open, took), append(update, next...)
		}
	}
	whole, alone := ratio(am, process), ratio(am, open)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(s.patches)/median(am).Seconds(), "git-am-patches/s")
	b.ReportMetric(float64(s.patches)/median(process).Seconds(), "patches/s")
	b.ReportMetric(float64(s.patches)/median(open).Seconds(), "open-patches/s")
	b.ReportMetric(whole, "times-git-am")
	b.ReportMetric(alone, "open-times-git-am")
	b.ReportMetric(float64(resident)/(1<<20), "MiB")
	b.ReportMetric(float64(median(update).Microseconds())/1000, "ms/next-checkout")
	if whole < leastProcess || alone < leastOpen || resident > mostResident || median(update) > mostUpdate {
		b.Errorf("%.1f times as fast as git am (at least %v), %.1f once open (at least %v), %d MiB (at most %d), next checkout %v (at most %v)",
			whole, leastProcess, alone, leastOpen, resident>>20, mostResident>>20, median(update), mostUpdate)
	}
}

// applyOpen applies in a repository that has just been opened, and at the first
// call checks every version out after the other.
func applyOpen(b *testing.B, repo string, s posted, series *mbox.Series, checkout bool) (took time.Duration, next []time.Duration) {
	r, err := tree.Open(repo)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	base := mbox.Base{Commit: s.base}
	start := time.Now()
	st, err := r.Apply(b.Context(), base, series, tree.Options{})
	took = time.Since(start)
	if err != nil || st.Conflict != nil {
		b.Fatalf("%v, %+v", err, st.Conflict)
	}
	if !checkout {
		return took, nil
	}
	p := r.Pristine(filepath.Join(b.TempDir(), "src"))
	if err := p.Update(b.Context(), s.base); err != nil {
		b.Fatal(err)
	}
	for _, step := range st.Steps[:min(30, len(st.Steps))] {
		start := time.Now()
		if err := p.Update(b.Context(), step.Commit); err != nil {
			b.Fatal(err)
		}
		next = append(next, time.Since(start))
	}
	return took, next
}

func seriesOf(b *testing.B, mailbox string) *mbox.Series {
	b.Helper()
	var errs bytes.Buffer
	m := input.Mail{Files: []string{mailbox}, Problems: &errs}
	s, err := m.Series(b.Context())
	if err != nil {
		b.Fatalf("%v\n%s", err, errs.String())
	}
	return s.Series
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// ratio is the median of the ratios of what was measured side by side.
func ratio(a, b []time.Duration) float64 {
	var all []float64
	for i := range a {
		all = append(all, a[i].Seconds()/b[i].Seconds())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// stretches makes series of the longest straight parts of the newest history, of
// 20 to 40 commits.
func stretches(b *testing.B, repo string, n int) (list []posted) {
	out, err := exec.Command("git", "-C", repo, "rev-list", "--topo-order", "--parents", "HEAD").Output()
	if err != nil {
		b.Fatal(err)
	}
	parent := map[string]string{}
	var order []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			parent[f[0]] = f[1]
			order = append(order, f[0])
		}
	}
	used := map[string]bool{}
	for _, tip := range order {
		s := posted{base: tip, tip: tip}
		for ; s.patches < 40 && parent[s.base] != "" && !used[s.base]; s.patches++ {
			s.base = parent[s.base]
		}
		if s.patches < 20 {
			continue
		}
		for c := tip; c != s.base; c = parent[c] {
			used[c] = true
		}
		if s.post(b, repo) {
			list = append(list, s)
		}
		if len(list) == n {
			return list
		}
	}
	b.Fatalf("%s has only %d straight stretches of 20 commits", repo, len(list))
	return nil
}

// post writes the mailbox; false if a commit of the stretch changes nothing,
// which no mail can carry.
func (s *posted) post(b *testing.B, repo string) bool {
	out, err := exec.Command("git", "-C", repo, "format-patch", "--stdout", "--binary", s.base+".."+s.tip).Output()
	if err != nil {
		b.Fatal(err)
	}
	if bytes.Contains(out, []byte("\r\n")) || bytes.Count(out, []byte("\nSubject: ")) != s.patches {
		return false
	}
	s.mailbox = filepath.Join(b.TempDir(), "series.mbox")
	if err := os.WriteFile(s.mailbox, out, 0o644); err != nil {
		b.Fatal(err)
	}
	return true
}

// large makes a repository of 80,000 files and a series of 100 patches to it.
func large(b *testing.B) (string, posted) {
	dir := b.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q", "--bare", "-b", "main").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	// Piped, not gathered: a process passes its own peak of memory on to those
	// that it starts.
	load := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	pipe, err := load.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := load.Start(); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewWriter(pipe)
	commit := func(n int) {
		text := fmt.Sprintf("change %d", n)
		fmt.Fprintf(in, "commit refs/heads/main\ncommitter T <t@example.org> %d +0000\ndata %d\n%s\n", 1700000000+n, len(text), text)
	}
	body := func(name string, changed int) string {
		var s strings.Builder
		for i := range 30 {
			if i == changed%30 && changed > 0 {
				fmt.Fprintf(&s, "%s has line %d, changed by %d\n", name, i, changed)
			} else {
				fmt.Fprintf(&s, "%s has line %d\n", name, i)
			}
		}
		return s.String()
	}
	put := func(name string, changed int) {
		text := body(name, changed)
		fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	name := func(i int) string { return fmt.Sprintf("part%02d/lib%02d/file%02d.c", i/2000, i/40%50, i%40) }
	commit(0)
	for i := range 80_000 {
		put(name(i), 0)
	}
	for n := 1; n <= 100; n++ {
		commit(n)
		for k := range 3 {
			put(name((n*7919+k*104729)%80_000), n)
		}
	}
	if err := errors.Join(in.Flush(), pipe.Close(), load.Wait()); err != nil {
		b.Fatal(err)
	}
	s := posted{base: "main~100", tip: "main", patches: 100}
	for _, rev := range []*string{&s.base, &s.tip} {
		out, err := exec.Command("git", "-C", dir, "rev-parse", *rev).Output()
		if err != nil {
			b.Fatal(err)
		}
		*rev = strings.TrimSpace(string(out))
	}
	if !s.post(b, dir) {
		b.Fatal("the series cannot be posted")
	}
	return dir, s
}
