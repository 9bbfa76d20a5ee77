package patch

import (
	"testing"

	"patchbench/mbox"
)

// TestEmptyChangeset reads a Mercurial changeset without a diff as a patch that
// changes nothing, and no other mail without one.
func TestEmptyChangeset(t *testing.T) {
	const header = "# HG changeset patch\n# User One <one@example.org>\n# Date 1700000000 -3600\n" +
		"# Node ID 0123456789abcdef0123456789abcdef01234567\n# Parent  89abcdef0123456789abcdef0123456789abcdef\n"
	for _, c := range []struct {
		name, subject, body string
		want                string // the patch's message, "" for no patch
	}{
		{"changeset", "[PATCH 4 of 6] make it run", header + "make it run\n\nIt is a program.\n", "make it run\n\nIt is a program.\n"},
		{"reply", "Re: [PATCH 4 of 6] make it run", header + "make it run\n", ""},
		{"no node", "[PATCH 4 of 6] make it run", "# HG changeset patch\n# User One <one@example.org>\nmake it run\n", ""},
		{"no changeset", "[PATCH 4/6] make it run", "It is a program.\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := "From: One <one@example.org>\nSubject: " + c.subject + "\nMessage-ID: <4@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\n\n" + c.body
			m, err := mbox.ParseMessage([]byte(raw), "test")
			if err != nil {
				t.Fatal(err)
			}
			got := Find(m, Options{}).Patches
			if len(got) != 0 != (c.want != "") {
				t.Fatalf("%d patches", len(got))
			}
			if c.want == "" {
				return
			}
			p := got[0].Patch
			if p.N != 4 || p.Message != c.want || len(p.Diff) != 0 || p.Style != mbox.StyleHg || p.Author.Email != "one@example.org" {
				t.Errorf("%+v", p)
			}
		})
	}
}
