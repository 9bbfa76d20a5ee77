package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/storetest"
)

// page is how many samples are read at a time.
const page = 4096

func ptr[T any](v T) *T { return &v }

func sample(id string) *store.Evaluation {
	return &store.Evaluation{
		ID:      id,
		Created: time.Date(2026, 11, 30, 9, 8, 7, 123456789, time.UTC),
		Series: &mbox.Series{
			MessageID: "one@example.org", Subject: "table: grow by half", Version: 2, Total: 1, Received: 1, Complete: true,
			Author: mbox.Address{Name: "Ada \u202e Example", Email: "one@example.org"},
			Date:   time.Date(2026, 11, 29, 1, 2, 3, 0, time.FixedZone("", 2*3600)),
			Tags:   []string{"RFC"}, Missing: []int{}, Lists: []string{},
			Patches: []mbox.Patch{{N: 1, Subject: "table: grow by half", Files: []string{"a <b>.c"}, Style: mbox.StyleGit}},
		},
		Base:  mbox.Base{Commit: "0123", How: mbox.HowBranch, Reason: "tip of main"},
		Suite: store.SuiteName{Name: "kit", Digest: "ab"},
		Versions: []bench.Version{
			{N: 0, Name: "base", State: bench.Built},
			{N: 1, Name: "1/1", State: bench.SameBuild, SameAs: ptr(0), LogTail: "a\x1b[31m\nb"},
		},
		Results: []bench.Comparison{{
			Benchmark: "hash", Params: map[string]string{"n": "3"}, Metric: "cpu", Unit: "s", Better: bench.Lower, Tested: true, Rounds: 20,
			Detectable: ptr(0.1 + 0.2),
			Values:     []bench.Value{{N: 0, Median: ptr(1.0 / 3), Lo: ptr(math.SmallestNonzeroFloat64), Hi: ptr(math.MaxFloat64), Samples: 20}, {N: 1}},
			Steps:      []bench.Step{{N: 1, Change: ptr(-0.0123456789012345678), Verdict: bench.Unclear, Reason: "needs about 40 rounds", Group: []int{1, 1}}},
			Total:      bench.Step{N: 1, Verdict: bench.NotMeasured},
			Warnings:   []string{},
		}},
		Failures: []bench.Failure{{N: 1, Benchmark: "sort", Signal: "SIGSEGV", Status: -1, LogTail: "x"}},
		Claims:   []bench.Claim{}, Warnings: []string{"w"},
		Conflict: &mbox.Conflict{N: 2, Files: []mbox.ConflictFile{{Path: "a.c", Hunk: 2, Line: 9, Reason: "context differs"}}},
		NotTried: []int{3},
		Rounds:   20, Seed: math.MaxUint64, Stopped: store.StoppedDecided, Margin: 0.01,
		Verdict: bench.Unclear, Headline: "h", BuildSeconds: 1.5, MeasureSeconds: 0.1, Command: "bot eval x",
	}
}

func TestRoundTrip(t *testing.T) { storetest.Each(t, testRoundTrip) }

func testRoundTrip(t *testing.T, s *store.Store) {
	bare := &store.Evaluation{ID: "20261130-000000"}
	bareBack := &store.Evaluation{
		ID: "20261130-000000", Versions: []bench.Version{}, Results: []bench.Comparison{},
		Failures: []bench.Failure{}, Claims: []bench.Claim{}, Warnings: []string{},
	}
	nils := &store.Evaluation{
		ID: "n", Series: &mbox.Series{Patches: []mbox.Patch{{N: 1, Diff: []byte("kept elsewhere")}}},
		Results: []bench.Comparison{{Benchmark: "a"}}, Conflict: &mbox.Conflict{N: 1},
	}
	nilsBack := &store.Evaluation{
		ID: "n",
		Series: &mbox.Series{
			Tags: []string{}, Missing: []int{}, Lists: []string{}, Patches: []mbox.Patch{{N: 1, Files: []string{}}},
		},
		Versions: []bench.Version{},
		Results: []bench.Comparison{{
			Benchmark: "a", Params: map[string]string{}, Values: []bench.Value{}, Steps: []bench.Step{}, Warnings: []string{},
		}},
		Failures: []bench.Failure{}, Claims: []bench.Claim{}, Warnings: []string{}, Conflict: &mbox.Conflict{N: 1, Files: []mbox.ConflictFile{}},
	}
	bad, badBack := sample("bad"), sample("bad")
	bad.Headline, badBack.Headline = "a\xff\ufffd\\ufffd", "a\ufffd\ufffd\\ufffd"
	for _, c := range []struct {
		name     string
		in, want *store.Evaluation
	}{
		{"full", sample("20261130-3f9a2c"), sample("20261130-3f9a2c")},
		{"bare", bare, bareBack},
		{"nil lists", nils, nilsBack},
		{"not UTF-8", bad, badBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := s.Save(t.Context(), c.in); err != nil {
				t.Fatal(err)
			}
			got, err := s.Evaluation(t.Context(), c.in.ID)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("read back (-want +got):\n%s", d)
			}
			before, err := store.Encode(c.in)
			if err != nil {
				t.Fatal(err)
			}
			after, err := store.Encode(got)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("encoded again, %v:\n%s\n%s", err, before, after)
			}
		})
	}
	if nils.Results[0].Params != nil || nils.Series.Tags != nil || nils.Conflict.Files != nil {
		t.Error("Encode changed its argument")
	}
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*store.Evaluation)
		want    string // part of the JSON
		wantErr string // part of the error
	}{
		{"author's mark stays", func(e *store.Evaluation) {}, `"files":["a <b>.c"]`, ""},
		{"zone of 24 hours", func(e *store.Evaluation) {
			e.Series.Date = time.Date(2026, 1, 2, 3, 0, 0, 0, time.FixedZone("", 24*3600))
		}, `"date":"2026-01-01T03:00:00Z"`, ""},
		{"year past 9999", func(e *store.Evaluation) {
			e.Series.Patches[0].Date = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
		}, `"date":"0001-01-01T00:00:00Z"`, ""},
		{"local time", func(e *store.Evaluation) { e.Created = e.Created.In(time.FixedZone("x", 3600)) }, `"created":"2026-11-30T09:08:07.123456789Z"`, ""},
		{"not UTF-8", func(e *store.Evaluation) { e.Headline = "a\xffb" }, `"headline":"a` + "\ufffd" + `b"`, ""},
		{"not finite", func(e *store.Evaluation) { e.Results[0].Values[0].Median = ptr(math.NaN()) }, "", "encode evaluation x: json: unsupported value: NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sample("x")
			c.change(e)
			got, err := store.Encode(e)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Fatalf("error %v, want %q", err, c.wantErr)
				}
				return
			}
			// json escapes the replacement character that it writes itself.
			text := strings.ReplaceAll(string(got), `\ufffd`, "\ufffd")
			if err != nil || !strings.Contains(text, c.want) {
				t.Errorf("error %v, want %s in\n%s", err, c.want, text)
			}
		})
	}
}

func TestSaveReplaces(t *testing.T) { storetest.Each(t, testSaveReplaces) }

func testSaveReplaces(t *testing.T, s *store.Store) {
	e := sample("20261130-3f9a2c")
	if err := s.Save(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	m := bench.Sample{Round: 1, Benchmark: "hash", Metric: "cpu", Unit: "s", Value: 0.5}
	if err := s.AddSamples(t.Context(), e.ID, []bench.Sample{m}); err != nil {
		t.Fatal(err)
	}
	e.Headline, e.Verdict = "done", bench.Worse
	if err := s.Save(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Summary{{
		ID: e.ID, Created: e.Created, Subject: "table: grow by half", Suite: "kit", Rounds: 20,
		Stopped: store.StoppedDecided, Verdict: bench.Worse, Headline: "done",
	}}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("list (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]bench.Sample{m}, collect(t, s, e.ID)); d != "" {
		t.Errorf("samples after the second save (-want +got):\n%s", d)
	}
	other := sample(e.ID)
	other.Created = other.Created.Add(time.Second)
	if err := s.Save(t.Context(), other); !errors.Is(err, store.ErrTaken) {
		t.Errorf("another evaluation with the same id: %v, want ErrTaken", err)
	}
}

func collect(t *testing.T, s *store.Store, id string) []bench.Sample {
	t.Helper()
	var all []bench.Sample
	for m, err := range s.Samples(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestSamples(t *testing.T) { storetest.Each(t, testSamples) }

func testSamples(t *testing.T, s *store.Store) {
	for _, id := range []string{"a", "b"} {
		if err := s.Save(t.Context(), sample(id)); err != nil {
			t.Fatal(err)
		}
	}
	kinds := []bench.Sample{
		{Round: 1, Version: 0, Benchmark: "grep", Params: map[string]string{"t": "4", "a": "'"}, Metric: "wall", Unit: "s", Value: 0.1 + 0.2, Position: ptr(0)},
		{Round: 1, Version: 0, Benchmark: "grep", Metric: "rss", Unit: "B", Value: 1 << 53, Twin: true, Position: ptr(3)},
		{Round: 1, Version: 2, Benchmark: "grep", Metric: "wall", Unit: "s", Failed: &bench.Failed{Signal: "SIGSEGV", Status: -1}},
		{Round: 1, Version: 3, Benchmark: "grep", Metric: "wall", Unit: "s", Failed: &bench.Failed{}},
		{Round: 2, Version: 1, Benchmark: "grep", Metric: "wall", Unit: "s", Value: 5e-324, Discarded: "stall", Covariates: map[string]float64{"psi_ns": 1e9 / 3.0, "nivcsw": 2}},
		{Round: 2, Version: 1, Benchmark: "", Params: map[string]string{}, Metric: "m", Unit: "MB/s", Value: -1.5, Failed: &bench.Failed{Reason: "output differs"}},
	}
	var want []bench.Sample
	for i := range 3 { // past two pages, in uneven batches
		var batch []bench.Sample
		for j := range page - 100*i {
			m := kinds[j%len(kinds)]
			m.Round = i*page + j
			batch = append(batch, m)
		}
		if err := s.AddSamples(t.Context(), "a", batch); err != nil {
			t.Fatal(err)
		}
		want = append(want, batch...)
	}
	if err := s.AddSamples(t.Context(), "b", kinds[:1]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, collect(t, s, "a")); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	if d := cmp.Diff(kinds[:1], collect(t, s, "b")); d != "" {
		t.Errorf("samples of b (-want +got):\n%s", d)
	}
	// The store may be used inside the loop, and the loop be left early.
	for range s.Samples(t.Context(), "a") {
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		break
	}
}

func TestAddSamplesErrors(t *testing.T) { storetest.Each(t, testAddSamplesErrors) }

func testAddSamplesErrors(t *testing.T, s *store.Store) {
	if err := s.Save(t.Context(), sample("a")); err != nil {
		t.Fatal(err)
	}
	good := bench.Sample{Round: 1, Benchmark: "g", Metric: "wall", Unit: "s", Value: 1}
	bad := bench.Sample{Round: 7, Version: 2, Benchmark: "g", Params: map[string]string{"k": "v"}, Metric: "wall", Unit: "s", Value: math.NaN()}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		id      string
		samples []bench.Sample
		want    string
	}{
		{"not finite", t.Context(), "a", []bench.Sample{good, bad}, "add samples to evaluation a: store " + s.Path() + ": round 7, version 2, g{k=v} wall: value NaN is not finite"},
		{"unknown evaluation", t.Context(), "z", []bench.Sample{good}, "add samples to evaluation z: store " + s.Path() + ": it is not in the store: save it first"},
		{"canceled", canceled, "a", []bench.Sample{good}, "add samples to evaluation a: store " + s.Path() + ": context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := s.AddSamples(c.ctx, c.id, c.samples)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
	if got := collect(t, s, "a"); len(got) != 0 {
		t.Errorf("a refused batch left %d samples", len(got))
	}
}

func TestNoSpaceLeft(t *testing.T) {
	s := storetest.Open(t)
	if err := s.Save(t.Context(), sample("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB().ExecContext(t.Context(), `PRAGMA max_page_count = 20`); err != nil {
		t.Fatal(err)
	}
	many := make([]bench.Sample, 5000)
	for i := range many {
		many[i] = bench.Sample{Round: i, Benchmark: "b", Metric: "wall", Unit: "s"}
	}
	err := s.AddSamples(t.Context(), "a", many)
	if err == nil || !strings.Contains(err.Error(), "no space left: free some on its file system or choose another file for the store") {
		t.Errorf("error %v", err)
	}
	if got := collect(t, s, "a"); len(got) != 0 {
		t.Errorf("a failed batch left %d samples", len(got))
	}
	if _, err := s.Evaluation(t.Context(), "a"); err != nil {
		t.Errorf("the record before it: %v", err)
	}
}

func TestIDs(t *testing.T) { storetest.Each(t, testIDs) }

func testIDs(t *testing.T, s *store.Store) {
	_, err := s.Evaluation(t.Context(), "2026")
	if want := fmt.Sprintf("no evaluation \"2026\": store %s is empty: run an evaluation first or name another store", s.Path()); err == nil || err.Error() != want {
		t.Errorf("empty store: %v, want %s", err, want)
	}
	for i, id := range []string{"20261129-3f9a2c", "20261130-3f0000", "20261130-3f9a2c", "20261130-3f9a2c0"} {
		e := sample(id)
		e.Created = e.Created.Add(time.Duration(i) * time.Hour)
		if err := s.Save(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	in := " in store " + s.Path() + ": "
	for _, c := range []struct{ id, want, wantErr string }{
		{id: "20261129", want: "20261129-3f9a2c"},
		{id: "20261130-3f9a2c", want: "20261130-3f9a2c"}, // exact wins over the longer one
		{id: "20261130-3f0", want: "20261130-3f0000"},
		{id: "20261130", wantErr: `evaluation "20261130" is ambiguous` + in + "it may be 20261130-3f9a2c0, 20261130-3f9a2c, 20261130-3f0000: give more of the id"},
		{id: "20261130-3f9b2c", wantErr: `no evaluation "20261130-3f9b2c"` + in + "did you mean 20261130-3f9a2c or 20261130-3f9a2c0 or 20261129-3f9a2c?"},
		{id: "9a2c", wantErr: `no evaluation "9a2c"` + in + "did you mean 20261130-3f9a2c0 or 20261130-3f9a2c or 20261129-3f9a2c?"},
		{id: "%", wantErr: `no evaluation "%"` + in + "the newest are 20261130-3f9a2c0, 20261130-3f9a2c, 20261130-3f0000"},
		{id: "", wantErr: `no evaluation ""` + in + "the newest are 20261130-3f9a2c0, 20261130-3f9a2c, 20261130-3f0000"},
		{id: "it's \x1b[2J", wantErr: `no evaluation "it's \x1b[2J"` + in + "the newest are 20261130-3f9a2c0, 20261130-3f9a2c, 20261130-3f0000"},
	} {
		t.Run(c.id, func(t *testing.T) {
			e, err := s.Evaluation(t.Context(), c.id)
			var idErr *store.IDError
			switch {
			case c.wantErr != "":
				if !errors.As(err, &idErr) || err.Error() != c.wantErr {
					t.Errorf("error %v\nwant  %s", err, c.wantErr)
				}
				for _, err := range s.Samples(t.Context(), c.id) {
					if !errors.As(err, &idErr) {
						t.Errorf("samples: %v", err)
					}
				}
			case err != nil || e.ID != c.want:
				t.Errorf("%v, %v, want %s", e, err, c.want)
			}
		})
	}
}

func TestNewID(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 11, 30, 23, 59, 59, 0, time.FixedZone("", -3600))
	a, b := store.NewID(at, r), store.NewID(at, r)
	if a != "20261201-c4f5a5" || a == b {
		t.Errorf("ids %s and %s", a, b)
	}
}

func TestOpen(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		url  string // DIR stands for a temporary folder
		make func(t *testing.T, dir string)
		is   error
		want string // the error's end; "" for none
	}{
		{name: "plain path", url: "DIR/bot.db"},
		{name: "sqlite path", url: "sqlite:DIR/bot.db"},
		{name: "sqlite url", url: "sqlite://DIR/bot.db"},
		{name: "new folders", url: "DIR/a/b/bot.db"},
		{name: "odd name", url: "DIR/50% #1?mode=ro&x.db"},
		{name: "empty file", url: "DIR/bot.db", make: func(t *testing.T, dir string) { write(t, dir+"/bot.db", "") }},
		{name: "no path", url: "sqlite:", is: store.ErrURL, want: "empty path: give sqlite:PATH, the path of a file or postgres://"},
		{name: "another scheme", url: "mysql://bot:secret@db/bot", is: store.ErrURL, want: "mysql URLs are not supported: give sqlite:PATH, the path of a file or postgres://"},
		{name: "folder", url: "DIR", is: store.ErrForeign, want: "it is a folder or device: give the path of a file in it"},
		{name: "below a file", url: "DIR/f/bot.db", make: func(t *testing.T, dir string) { write(t, dir+"/f", "") },
			want: "not a directory: choose another file for the store"},
		{name: "text file", url: "DIR/notes", make: func(t *testing.T, dir string) { write(t, dir+"/notes", strings.Repeat("my notes\n", 300)) },
			is: store.ErrForeign, want: "it is not an SQLite file: choose another file for the store"},
		{name: "short text file", url: "DIR/notes", make: func(t *testing.T, dir string) { write(t, dir+"/notes", "my notes\n") },
			is: store.ErrForeign, want: "it is not an SQLite file: choose another file for the store"},
		{name: "another program's", url: "DIR/bot.db", make: func(t *testing.T, dir string) {
			s, err := store.Open(t.Context(), dir+"/bot.db")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.DB().ExecContext(t.Context(), `PRAGMA application_id = 0`); err != nil {
				t.Fatal(err)
			}
		}, is: store.ErrForeign, want: "another program's database: choose another file for the store"},
		{name: "newer", url: "DIR/bot.db", make: func(t *testing.T, dir string) {
			s, err := store.Open(t.Context(), dir+"/bot.db")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.DB().ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`); err != nil {
				t.Fatal(err)
			}
		}, is: store.ErrNewer, want: "its schema is 99, this program knows 3: upgrade Patchbench or choose another store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.make != nil {
				c.make(t, dir)
			}
			before := listFiles(t, dir)
			s, err := store.Open(t.Context(), strings.ReplaceAll(c.url, "DIR", dir))
			if c.want != "" {
				if err == nil {
					s.Close()
					t.Fatal("no error")
				}
				if !strings.HasSuffix(err.Error(), c.want) || (c.is != nil && !errors.Is(err, c.is)) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error %v\nwant ... %s", err, c.want)
				}
				if d := cmp.Diff(before, listFiles(t, dir)); d != "" {
					t.Errorf("files changed (-before +after):\n%s", d)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Save(t.Context(), sample("a")); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(s.Path()); err != nil {
				t.Error(err)
			}
			// What is saved is there for a second process while the first works.
			again, err := store.Open(t.Context(), strings.ReplaceAll(c.url, "DIR", dir))
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if _, err := again.Evaluation(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// listFiles gives names and contents under dir.
func listFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			files[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestOpenFailsClean(t *testing.T) {
	dir := t.TempDir()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(canceled, dir+"/a/b/bot.db"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff(map[string]string{dir: ""}, listFiles(t, dir)); d != "" {
		t.Errorf("left behind (-want +got):\n%s", d)
	}
}

func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), dir+"/bot.db")
	if err == nil || !strings.Contains(err.Error(), "check the permissions") {
		t.Errorf("error %v", err)
	}
}

func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Save(t.Context(), sample(fmt.Sprint("e", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if list, err := s.List(t.Context()); err != nil || len(list) != 8 {
		t.Errorf("%d evaluations, %v", len(list), err)
	}
}
