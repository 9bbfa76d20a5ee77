package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layer gives each package of the module its height; a package may import only
// lower ones. The table is that of the README's "Layout" section.
var layer = map[string]int{
	"config":                     0,
	"config/service":             21, // knows addresses and suites
	"deploy":                     0,
	"bench/sandbox/mark":         0, // which processes belong to which program
	"bench/sandbox/output":       0, // what a program prints
	"bench/sandbox/perf":         0, // what the processor counts
	"bench/sandbox/sweep":        0, // what it leaves
	"bench/sandbox/runner":       1, // the part of bench/sandbox inside the box
	"bench/sandbox/claim":        0, // folders that are a process's own
	"bench/sandbox/cgroup":       1,
	"bench/sandbox/seccomp":      0, // the calls refused inside the box
	"bench/sandbox/probe":        3, // the program of the self-test
	"bench/sandbox":              5,
	"mbox":                       10,
	"bench":                      10,
	"mbox/cases":                 11, // for tests
	"mbox/tree/diff":             15, // the parts of mbox/tree that know no series
	"mbox/tree/odb":              15,
	"mbox/tree/merge":            15,
	"mbox/tree/overlay":          16,
	"mbox/tree/checkout":         17,
	"mbox/series/patch":          15, // the part of mbox/series that knows one mail alone
	"mbox/series/assembly":       17, // the part of mbox/series that decides
	"mbox/series/keep":           16, // the part of mbox/series that knows no series
	"mbox/series/spill":          0,
	"bench/clone":                0,
	"bench/elfhead":              0,
	"bench/late":                 0,
	"bench/unlink":               0,
	"bench/settle":               0,
	"bench/headline":             15,
	"bench/fixture":              15,
	"bench/sample/jsonl":         15,
	"bench/sample/plan":          15, // the part of bench/sample that runs nothing
	"mbox/source":                20,
	"mbox/source/epoch":          18, // the git repositories of a public-inbox
	"mbox/source/feed":           21, // the sources that are followed
	"mbox/source/imap":           22,
	"mbox/source/maildir":        22,
	"mbox/source/inbox":          22,
	"mbox/series":                20,
	"mbox/tree":                  20,
	"bench/suite":                20,
	"bench/build":                20,
	"bench/sample":               20,
	"bench/sample/counter":       15, // the part of bench/sample that knows valgrind alone
	"bench/sample/parse":         15, // the part of bench/sample that knows text alone
	"bench/sample/parse/unit":    13,
	"bench/sample/parse/node":    14,
	"bench/sample/parse/gobench": 14,
	"bench/compare":              20,
	"bench/claims":               20,
	"store/db":                   28, // the databases that store stands on
	"store/record":               29, // the part of store that knows no service
	"store/outbox":               29, // the part of store that knows no task
	"store":                      30,
	"store/db/dbtest":            27, // for tests
	"store/storetest":            31, // for tests
	"bot/eval/edits":             35, // the parts of bot/eval that run nothing
	"bot/eval/taken":             35,
	"bot/eval/resume":            35,
	"bot/eval/variant":           38, // the part of bot/eval that knows build parameters
	"bot/eval":                   40,
	"bot/report/plain":           31, // the parts of bot/report that know no evaluation
	"bot/report/figure":          32,
	"bot/report/rows":            33,
	"bot/report/delta":           36,
	"bot/report":                 40,
	"bot/report/layout":          42,
	"bot/report/machines":        43,
	"bot/report/history":         42,
	"bot/report/html":            45,
	"bot/report/long":            45,
	"bot/report/cases":           35,
	"bot/report/markdown":        45,
	"bot/letter":                 46,
	"bot/check":                  45,
	"bot/check/parts":            55, // of the service, each tried by its own code
	"bot/workfolder":             41,
	"bot/part":                   41,
	"bot/work/slot":              49, // the parts of bot/work that know no task
	"bot/work/mirror":            49,
	"bot/github/githubtest":      45, // for tests
	"bot/github/api":             46, // the parts of bot/github: the way there
	"bot/github/mirror":          46, // git
	"bot/github/comment":         46, // text
	"bot/github/hint":            46, // what happened
	"bot/github/intake":          47, // who tells of it
	"bot/github/notice":          47, // what is told in return
	"bot/github/fetch":           47, // what the worker needs
	"bot/github":                 48,
	"bot/watch":                  50,
	"bot/watch/sender":           45, // who sent a mail
	"bot/watch/pathspec":         45, // which files are of interest
	"bot/watch/command":          45, // what a mail asks for
	"bot/watch/traffic":          45, // for tests
	"bot/work":                   50,
	"bot/reply":                  50,
	"bot/web":                    50,
	"bot/input":                  41, // the parts of bot that know no flags: what is read
	"bot/samples":                41,
	"bot/starter":                41, // what is made for who begins
	"bot/demo":                   41,
	"bot/listing":                41, // what is shown
	"bot/operator":               41,
	"bot/plan":                   45,
	"bot/progress":               45,
	"bot/out":                    46,
	"bot/serving":                56, // what runs
	"bot":                        60,
}

// topLevel is all that may stand beside dot files at the top of the tree.
var topLevel = []string{
	"bot", "mbox", "bench", "store", "config", "deploy",
	"go.mod", "go.sum", "README.md", "LICENSE",
}

// forbidden says why package from must not import package to, "" if it may.
func forbidden(from, to string) string {
	switch {
	case layer[from] <= layer[to]:
		return "a package imports only packages of lower layers"
	case strings.HasPrefix(from, "mbox") && strings.HasPrefix(to, "bench"),
		strings.HasPrefix(from, "bench") && strings.HasPrefix(to, "mbox"):
		return "mbox and bench never import each other"
	}
	return ""
}

// The import lines are parsed here, not asked of the go command: a test that
// runs `go list` would be answered from the test cache after a forbidden import.
func TestLayers(t *testing.T) {
	root := ".."
	seen := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		from := path.Dir(filepath.ToSlash(rel))
		if _, ok := layer[from]; !ok {
			t.Errorf("%s: package %s has no layer: add it to the table or move the file", rel, from)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen++
		for _, spec := range f.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "patchbench/")
			if !ours {
				continue
			}
			if strings.HasSuffix(file, "_test.go") && strings.HasPrefix(to, from) {
				continue // an external test imports its own package
			}
			if _, ok := layer[to]; !ok {
				t.Errorf("%s imports %s, which has no layer", rel, to)
			} else if why := forbidden(from, to); why != "" {
				t.Errorf("%s imports %s: %s", rel, to, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d Go files were read: is the root %s right?", seen, root)
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"bot/eval", "mbox/tree", true},
		{"bot", "bot/eval", true},
		{"bench/build", "bench/sandbox", true},
		{"bench/sandbox", "bench", false},
		{"bot/eval", "bot/report", false},
		{"mbox/tree", "mbox/series", false},
		{"mbox", "bench/sandbox", false},
		{"bench/sample", "mbox", false},
		{"store", "bot/eval", false},
	} {
		if got := forbidden(c.from, c.to) == ""; got != c.allowed {
			t.Errorf("%s importing %s: allowed = %v, want %v", c.from, c.to, got, c.allowed)
		}
	}
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s stands at the top level, beside %v", e.Name(), topLevel)
		}
	}
}
