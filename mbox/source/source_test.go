package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const from = "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"

func mail(subject string) string {
	return "From: A U Thor <author@example.com>\nSubject: " + subject + "\n\ny\n"
}

func pack(s string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, s)
	w.Close()
	return out.String()
}

// drain gives the subjects of all messages and the problems.
func drain(t *testing.T, s *Source) (subjects, problems []string) {
	t.Helper()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		m, p, err := s.Next()
		switch {
		case errors.Is(err, ErrEnd):
			return subjects, problems
		case err != nil:
			t.Fatal(err)
		case p != nil:
			problems = append(problems, p.Error)
		default:
			subjects = append(subjects, m.Subject)
		}
	}
}

func TestOpen(t *testing.T) {
	const passed = "a folder in a folder is not read: name it as well if its mails are wanted"
	two := from + mail("one") + "\n" + from + mail("two") + "\n"
	for _, tc := range []struct {
		name     string
		files    map[string]string // a folder if there are several or a name has a /
		stdin    string
		open     string
		subjects []string
		problems []string
	}{
		{name: "mbox", files: map[string]string{"a.mbox": two}, open: "a.mbox", subjects: []string{"one", "two"}},
		{name: "mail", files: map[string]string{"a": mail("one")}, open: "a", subjects: []string{"one"}},
		{name: "gzip", files: map[string]string{"a.mbox.gz": pack(two)}, open: "a.mbox.gz", subjects: []string{"one", "two"}},
		{name: "gzip cut off", files: map[string]string{"a.gz": pack(two + strings.Repeat("x", 99))[:60]}, open: "a.gz",
			problems: []string{"broken gzip file: unexpected EOF"}},
		{name: "stdin", stdin: two, open: "-", subjects: []string{"one", "two"}},
		{name: "stdin, gzip", stdin: pack(two), open: "-", subjects: []string{"one", "two"}},
		{name: "empty", files: map[string]string{"a": ""}, open: "a"},
		{name: "hg export", files: map[string]string{"a.patch": "# HG changeset patch\n# User a\none\n"}, open: "a.patch", subjects: []string{""}},
		{name: "patch files by name", files: map[string]string{"0002-b.patch": from + mail("two"), "0001-a.patch": from + mail("one"), "0003-c.patch.gz": pack(from + mail("three")), "notes.txt": "no"},
			open: ".", subjects: []string{"one", "two", "three"}},
		{name: "a folder with something else", files: map[string]string{"a.patch": "diff --git a/x b/x\n", "b.eml": mail("two")}, open: ".",
			subjects: []string{"two"}, problems: []string{"not an mbox or mail file: a diff without author and message (make it with git format-patch)"}},
		{name: "Maildir", files: map[string]string{"cur/2.host:2,S": mail("two"), "new/1.host": mail("one"), "tmp/3.host": mail("three"), "cur/.hidden": ""}, open: ".", subjects: []string{"one", "two"}},
		{name: "folders in a folder", files: map[string]string{"a.patch": mail("one"), "v2/b.patch": mail("two"), "notes/c.txt": "no", ".list/cur/3.host": mail("three")}, open: ".",
			subjects: []string{"one"}, problems: []string{passed, passed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tc.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			path := tc.open
			if path != "-" {
				path = filepath.Join(dir, path)
			}
			s, err := Open(path, strings.NewReader(tc.stdin))
			if err != nil {
				t.Fatal(err)
			}
			subjects, problems := drain(t, s)
			if d := cmp.Diff(tc.subjects, subjects); d != "" {
				t.Errorf("mails (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"elf": "\x7fELF\x02\x01\x01\x00\x00: \x00\n\n", "yaml": "key: value\nother: thing\n", "text": "Dear all,\n\nhello: you\n",
		"diff": "--- a/f\n+++ b/f\n", "broken.gz": "\x1f\x8bnot gzip", "empty/notes.txt": "", "maildirs/.git/new/1.host": mail("one"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"elf":       "not an mbox or mail file",
		"yaml":      "not an mbox or mail file",
		"text":      "not an mbox or mail file",
		"diff":      "not an mbox or mail file: a diff without author and message (make it with git format-patch)",
		"broken.gz": "broken gzip file: gzip: invalid header",
		"missing":   "no such file or directory",
		"empty":     "no mails in it (looked for *.patch, *.eml, *.mbox and Maildir cur/ and new/)",
		"maildirs":  "no mails in it (looked for *.patch, *.eml, *.mbox and Maildir cur/ and new/); its folder .git has some: name that one",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			_, err := Open(path, nil)
			var ie *InputError
			if !errors.As(err, &ie) {
				t.Fatalf("error %v, want an InputError", err)
			}
			if d := cmp.Diff(path+": "+want, err.Error()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
