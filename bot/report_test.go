package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"patchbench/bot/report/cases"
	"patchbench/mbox"
	"patchbench/store"
)

// runBot runs the command as main does.
func runBot(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, &terminal{strings.NewReader(""), &out, &err})
	return status, out.String(), err.String()
}

// kept is a store that holds ten evaluations a month apart, of which the last
// five have a slower base.
func kept(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bot.db")
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 {
		b := cases.New("No change", "same", "kit: rework")
		level := 0.4 + 0.0002*float64(i%3)
		if i >= 5 {
			level *= 1.05
		}
		b.Process("hash", level, 1<<20, nil, nil)
		b.Process("scan", level, 1<<20, nil, nil)
		b.ID, b.Created = fmt.Sprintf("2026%02d01-00000%d", i+1, i), time.Date(2026, time.Month(i+1), 1, 0, 0, 0, 0, time.UTC)
		b.Base = mbox.Base{Commit: fmt.Sprintf("%040x", i+1), How: mbox.HowBranch}
		if err := s.Save(t.Context(), b.Evaluation); err != nil {
			t.Fatal(err)
		}
		if err := s.AddSamples(t.Context(), b.ID, cases.Samples(b.Evaluation)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestReportFormats(t *testing.T) {
	path := kept(t)
	for _, c := range []struct {
		name  string
		args  []string
		begin string
		has   string
	}{
		{"text", nil, "No change\n", "Reproduce:"},
		{"long", []string{"--long"}, "No change\n", "hash user (ms, 20 rounds)"},
		{"json", []string{"--format", "json"}, "{\n", `"claims": []`},
		{"markdown", []string{"--format", "markdown"}, "**No change.** ", "<details><summary>Machine"},
		{"html", []string{"--format", "html"}, "<!DOCTYPE html>", "Samples by round"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"report", "20260301", "--store", path}, c.args...)
			status, out, stderr := runBot(args...)
			if status != 0 || stderr != "" || !strings.HasPrefix(out, c.begin) || !strings.Contains(out, c.has) {
				t.Fatalf("status %d, stderr %q, output:\n%.400s", status, stderr, out)
			}
			if _, again, _ := runBot(args...); again != out {
				t.Error("the second time gives other bytes")
			}
		})
	}
}

// TestReportLayouts has rows and columns of the reader's choice, and the same
// series on two machines.
func TestReportLayouts(t *testing.T) {
	path := kept(t)
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	here, there := cases.All["planted"](), cases.Other(cases.All["planted"](), 2.4, 0)
	for _, b := range []cases.Builder{here, there} {
		b.Created = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		if err := s.Save(t.Context(), b.Evaluation); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		has    string // of both outputs
	}{
		{"rows and columns", []string{here.ID, "--rows", "benchmark", "--columns", "version", "--metrics", "cpu"}, 0, "  hash     412.3  +-1.6     433.3 +-1.7   +5.1 %"},
		{"a metric alone", []string{here.ID, "--metrics", "rss"}, 0, "  table  rss   64.00"},
		{"one behind another", []string{here.ID, "--rows", "version", "--columns", "benchmark", "--metrics", "wall(user)"}, 0, "wall (user), in ms"},
		{"two machines", []string{here.ID, there.ID}, 0, "  hash cpu     +5.1 % (4.7 .. 5.5)     0.00 %= (-0.40 .. 0.44)"},
		{"two machines in columns", []string{here.ID, there.ID, "--rows", "benchmark,version", "--columns", "machine", "--metrics", "cpu"}, 0, "bench1"},
		{"two series", []string{here.ID, "20260301"}, statusUsage, "not of the same code"},
		{"two series in columns", []string{here.ID, "20260301", "--columns", "machine"}, statusUsage, "not of the same code"},
		{"an unknown dimension", []string{here.ID, "--rows", "colour"}, statusUsage, `no dimension "colour": there are benchmark, params, machine, version, metric`},
		{"a dimension twice", []string{here.ID, "--rows", "version", "--columns", "version"}, statusUsage, "named twice"},
		{"an unknown metric", []string{here.ID, "--metrics", "joules"}, statusUsage, `no metric "joules" was measured: there are cpu, rss, user, wall`},
		{"not a metric", []string{here.ID, "--metrics", "wall(user"}, statusUsage, "as wall(user)"},
		{"long and HTML", []string{here.ID, "--long", "--format", "html"}, statusUsage, "--long"},
		{"long and columns", []string{here.ID, "--long", "--columns", "version"}, statusUsage, "--long has its own tables"},
		{"columns and JSON", []string{here.ID, "--columns", "version", "--format", "json"}, statusUsage, "lay out the text, not json"},
		{"two machines as HTML", []string{here.ID, there.ID, "--format", "html"}, statusUsage, "as text alone"},
		{"no evaluation", []string{"--columns", "version"}, statusUsage, "no evaluation is named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"report", "--store", path}, c.args...)
			status, out, stderr := runBot(args...)
			if status != c.status || !strings.Contains(out+stderr, c.has) || (status == 0) != (stderr == "") {
				t.Fatalf("status %d, stderr %q, output:\n%s", status, stderr, out)
			}
			if _, again, _ := runBot(args...); again != out {
				t.Error("the second time gives other bytes")
			}
		})
	}
}

func TestHistory(t *testing.T) {
	path := kept(t)
	for _, c := range []struct {
		name   string
		args   []string
		status int
		has    string // of both outputs
		lines  int    // of the text, 0 for any
	}{
		{"cpu by default", []string{"hash"}, 0, "hash cpu on bench1 (Example EX-2650 v3 @ 2.30GHz), 10 evaluations", 12},
		{"the change is marked", []string{"hash"}, 0, "+5.0 % worse", 12},
		{"a metric", []string{"hash", "--metric", "user"}, 0, "hash user on bench1", 12},
		{"since a day", []string{"hash", "--since", "2026-04-01"}, 0, "7 evaluations", 9},
		{"json", []string{"hash", "--format", "json"}, 0, `"change": 0.05`, 0},
		{"html", []string{"hash", "--format", "html"}, 0, "<svg ", 0},
		{"no such benchmark", []string{"hsah"}, statusUsage, "it has hash, scan", 0},
		{"no such metric", []string{"hash", "--metric", "joules"}, statusUsage, "hash has no metric \"joules\"", 0},
		{"too late", []string{"hash", "--since", "2030-01-01"}, statusUsage, "since 2030-01-01", 0},
		{"no time", []string{"hash", "--since", "yesterday"}, statusUsage, "neither a day like", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, stderr := runBot(append([]string{"history", "--store", path}, c.args...)...)
			if status != c.status || !strings.Contains(out+stderr, c.has) || c.lines > 0 && strings.Count(out, "\n") != c.lines {
				t.Errorf("status %d, %d lines, stderr %q, output:\n%s", status, strings.Count(out, "\n"), stderr, out)
			}
		})
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"": {}, "2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "90d": now.AddDate(0, 0, -90), "48h": now.Add(-48 * time.Hour),
	} {
		if got, err := sinceOf(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"d", "-3d", "0d", "1.5d", "3w", "2026-13-01", "-5h", "999999999d"} {
		if got, err := sinceOf(in, now); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}
