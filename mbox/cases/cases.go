// Package cases reads the shared collection of patch mails, cases/mail beside the
// project, for the tests of mbox/series and its parts. In go the collection's list
// and the name of a kind; out come cases, each with its mails and with what must be
// read from them. What a kind means is known to the test that checks it.
package cases

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"patchbench/mbox"
)

// Case is one entry of the collection.
type Case struct {
	ID     string
	Kind   string
	File   string // of its mails; "" for none
	Unfair string // why it is not to be held against anyone, "" if it is
	Expect json.RawMessage

	dir string
}

// Check holds what is read from a case's mails against what it expects, and gives
// what differs.
type Check func(Case) (differences []string)

// Run runs the check of each kind on the cases of that kind, as subtests. A case
// in decided, which gives the reason, is one whose answer differs from ours on
// purpose: it must fail, so that the list stays honest. Without the collection the
// test is skipped, or fails in CI.
func Run(t *testing.T, checks map[string]Check, decided map[string]string) {
	t.Helper()
	dir := folder(t)
	data, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Case
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	ran := make(map[string]bool)
	for _, c := range all {
		check := checks[c.Kind]
		if check == nil {
			continue
		}
		ran[c.Kind] = true
		c.dir = dir
		t.Run(c.ID, func(t *testing.T) {
			switch {
			case c.Unfair != "":
				t.Skip(c.Unfair)
			case c.File == "" && c.Kind == "patch-content":
				t.Skip("the mail's text is not in the collection, only its hash")
			}
			bad := check(c)
			if reason := decided[c.ID]; reason != "" {
				if len(bad) == 0 {
					t.Errorf("agrees now, although %s: take it off the list", reason)
				}
				return
			}
			for _, b := range bad {
				t.Error(b)
			}
		})
	}
	for kind := range checks {
		if !ran[kind] {
			t.Errorf("no case of kind %s in the collection", kind)
		}
	}
}

// folder is where the collection is.
func folder(t *testing.T) string {
	shared := os.Getenv("PATCHBENCH_SHARED")
	if shared == "" {
		root, err := filepath.Abs(".")
		for err == nil {
			if _, err = os.Stat(filepath.Join(root, "go.mod")); !errors.Is(err, fs.ErrNotExist) || root == filepath.Dir(root) {
				break
			}
			root, err = filepath.Dir(root), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		shared = filepath.Join(root, "..", "shared")
	}
	dir := filepath.Join(shared, "cases", "mail")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the shared cases are missing: %v", err)
		}
		t.Skipf("the shared cases are missing: %v", err)
	}
	return dir
}

// Want reads what the case expects.
func (c Case) Want(v any) error { return json.Unmarshal(c.Expect, v) }

// Messages reads all mails of the case's file.
func (c Case) Messages(format mbox.Format) ([]*mbox.Message, []mbox.Problem, error) {
	f, err := os.Open(filepath.Join(c.dir, c.File))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r := mbox.NewReader(f, c.File)
	r.Format = format
	var messages []*mbox.Message
	var problems []mbox.Problem
	for {
		m, p, err := r.Next()
		switch {
		case err == io.EOF:
			return messages, problems, nil
		case err != nil:
			return nil, nil, err
		case p != nil:
			problems = append(problems, *p)
		default:
			messages = append(messages, m)
		}
	}
}
