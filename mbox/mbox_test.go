package mbox

import "testing"

func TestConflictFileString(t *testing.T) {
	for _, tc := range []struct {
		name string
		file ConflictFile
		want string
	}{
		{"a line of a hunk", ConflictFile{Path: "a.c", Hunk: 2, Line: 120, Reason: "context differs"}, "a.c: hunk 2: line 120: context differs"},
		{"the whole file", ConflictFile{Path: "a.c", Reason: "the file does not exist"}, "a.c: the file does not exist"},
		{"no file", ConflictFile{Reason: "no diff that can be applied"}, "no diff that can be applied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.file.String(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
