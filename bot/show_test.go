package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// TestShowSpills lists mail with more text than is held in memory, and leaves
// nothing behind in the folder that the text went to.
func TestShowSpills(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var box strings.Builder
	var want []string
	for i := range 600 {
		message := fmt.Sprintf("change %d\n\n%s", i, strings.Repeat(fmt.Sprintf("Why it is done, %d.\n", i), 600))
		want = append(want, message)
		subject, why, _ := strings.Cut(message, "\n\n")
		fmt.Fprintf(&box, "From a@example.org Mon Nov  2 09:00:00 2026\nFrom: A Tester <tester@example.org>\nMessage-ID: <%d@example.org>\nDate: Mon, 2 Nov 2026 09:%02d:%02d +0000\nSubject: [PATCH] %s\n\n%s---\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%d\n+x\n\n",
			i, i/60, i%60, subject, why, i)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"show", "--json", "-"}, &terminal{strings.NewReader(box.String()), &out, &errs}); status != statusDone {
		t.Fatalf("status %d: %s", status, &errs)
	}
	var l mbox.Listing
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range l.Series {
		got = append(got, s.Patches[0].Message)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}

	t.Setenv("TMPDIR", filepath.Join(dir, "gone"))
	errs.Reset()
	status := run([]string{"show", "--json", "-"}, &terminal{strings.NewReader(box.String()), &out, &errs})
	if status != statusOurs || !strings.Contains(errs.String(), "open a temporary file in "+filepath.Join(dir, "gone")) {
		t.Errorf("status %d, want %d; %s", status, statusOurs, &errs)
	}
}

// TestShowFromArchive looks a message up in an archive on the net, by its address
// and by its id.
func TestShowFromArchive(t *testing.T) {
	var messages []*mbox.Message
	for i, subject := range []string{"[PATCH 1/2] one", "[PATCH 2/2] two"} {
		raw := fmt.Sprintf("From: A Tester <tester@example.org>\nMessage-ID: <%d@example.org>\nIn-Reply-To: <0@example.org>\nSubject: %s\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%d\n+x\n", i, subject, i)
		messages = append(messages, &mbox.Message{Raw: []byte(raw)})
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := mbox.Write(z, messages...); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/dev/0@example.org/t.mbox.gz", "/dev/1@example.org/t.mbox.gz":
			w.Header().Set("Content-Type", "application/gzip")
			w.Write(packed.Bytes())
		case "/dev/busy@example.org/t.mbox.gz":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"address", []string{server.URL + "/dev/1@example.org/"}, statusDone, "complete: 2 patches\n"},
		{"id", []string{"<0@example.org>", "--archive", server.URL + "/dev"}, statusDone, "complete: 2 patches\n"},
		{"JSON", []string{"0@example.org", "--archive", server.URL + "/dev", "--json"}, statusDone, `"complete": true`},
		{"not there", []string{"7@example.org", "--archive", server.URL + "/dev"}, statusUsage, "the archive has no message <7@example.org> (404 Not Found)"},
		{"overloaded", []string{"busy@example.org", "--archive", server.URL + "/dev"}, statusOurs, "the archive answered 503 Service Unavailable; try again later"},
		{"nobody there", []string{"0@example.org", "--archive", "http://127.0.0.1:1/dev"}, statusOurs, "connection refused; try again later"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(append([]string{"show"}, tc.args...), &terminal{strings.NewReader(""), &out, &errs})
			if status != tc.status || !strings.Contains(out.String()+errs.String(), tc.want) {
				t.Errorf("status %d, want %d; want %q in\n%s%s", status, tc.status, tc.want, out.String(), errs.String())
			}
		})
	}
}
