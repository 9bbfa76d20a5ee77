package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/store"
)

// inProcess runs the command in this process.
func inProcess(args ...string) (status int, stdout, stderr string) {
	var out, log bytes.Buffer
	status = run(args, &terminal{strings.NewReader(""), &out, &log})
	return status, out.String(), log.String()
}

func TestJobs(t *testing.T) {
	db := filepath.Join(t.TempDir(), "bot.db")
	st, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	raw := "Message-ID: <p1@example.org>\r\nSubject: [PATCH] hash: faster\r\n\r\nFrom here on\r\n---\n"
	if _, err := st.TakeIn(t.Context(), "maildir:/m", "1", []store.Mail{{Key: "p1@example.org", Raw: []byte(raw)}}); err != nil {
		t.Fatal(err)
	}
	aside := `{"uidvalidity":1,"next":9,"aside":[{"uid":3,"since":"2026-11-30T18:00:00Z","again":"2026-11-30T20:00:00Z"}]}`
	if _, err := st.TakeIn(t.Context(), "imap:b@h/INBOX", aside, nil); err != nil {
		t.Fatal(err)
	}
	payload := store.EncodePayload(store.MailPayload{Series: mbox.Series{Cover: &mbox.Cover{MessageID: "gone@example.org"},
		Patches: []mbox.Patch{{N: 1, MessageID: "p1@example.org"}, {N: 2, MessageID: "p1@example.org"}}}})
	for _, k := range []store.Task{
		{Key: "one", Payload: payload, Title: "hash: \x1b[31mfaster", State: store.Held, Reason: "a stranger"},
		{Key: "two", Title: "table: smaller", State: store.Queued},
		{Key: "three", Title: "sort: other", State: store.Ignored, Reason: "tag RFC"},
	} {
		k.Kind, k.Project, k.Class, k.Version, k.Created = store.KindMail, "kit", "x86", 1, time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
		k.Author, k.List, k.Ref = mbox.Address{Name: "Some Author", Email: "one@example.org"}, "kit@lists.example.org", k.Key+"@example.org"
		if _, _, err := st.Decide(t.Context(), store.Decision{Task: k}); err != nil {
			t.Fatal(err)
		}
	}
	st.Close()

	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"jobs", statusUsage, "", "--config, or its record with --store"},
		{"jobs --store " + db + "x", statusUsage, "", "no record"},
		{"jobs --store " + db + " --config bot.toml", statusUsage, "", "leave --store out"},
		{"jobs --config nowhere.toml", statusUsage, "", "nowhere.toml"},
		{"jobs --store " + db + " --state waiting", statusUsage, "", "no such state; there are held, queued"},
		{"jobs --store " + db + " --limit 0", statusUsage, "", "above 0"},
		{"jobs --store " + db, statusDone, "3  ignored  2026-11-02 09:00  kit  sort: other: tag RFC\n" +
			"2  queued  2026-11-02 09:00  kit  table: smaller\n" +
			"1  held  2026-11-02 09:00  kit  hash: \\x1b[31mfaster: a stranger\n", "set aside: mail UID 3 of imap:b@h/INBOX, which the server has not given since 2026-11-30 18:00; asked for again at 2026-11-30 20:00"},
		{"jobs list --state held --store " + db, statusDone, "1  held  2026-11-02 09:00  kit  hash: \\x1b[31mfaster: a stranger\n", ""},
		{"jobs --project other --store " + db, statusDone, "", "no jobs"},
		{"jobs show 4 --store " + db, statusUsage, "", "job 4: "},
		{"jobs show 1 --mail --store " + db, statusUsage, "From mboxrd@z Thu Jan  1 00:00:00 1970\n" + strings.Replace(raw, "From here", ">From here", 1) + "\n",
			"mail <gone@example.org> is not kept any more"},
		{"jobs show 2 --mail --store " + db, statusUsage, "", "job 2 names no mails"},
		{"jobs show 1 --mail --json --store " + db, statusUsage, "", "choose one"},
		{"jobs release 1 --store " + db, statusDone, "1 queued\n", ""},
		{"jobs release 2 --store " + db, statusUsage, "", "job 2: "},
		{"jobs cancel 1 2 9 --store " + db, statusUsage, "1 stopped\n2 stopped\n", "job 9: "},
		{"jobs retry 1 --store " + db, statusDone, "1 queued\n", ""},
		{"jobs retry 3 --store " + db, statusUsage, "", "job 3: "},
	} {
		status, stdout, stderr := inProcess(strings.Fields(c.args)...)
		if status != c.status || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("bot %s: status %d, want %d\nstdout %q\n  want %q\nstderr %q\n  want %q in it", c.args, status, c.status, stdout, c.stdout, stderr, c.stderr)
		}
	}

	var states []string
	_, stdout, _ := inProcess("jobs", "--json", "--store", db)
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	for _, k := range list {
		states = append(states, k["key"].(string)+" "+k["state"].(string))
	}
	if d := cmp.Diff([]string{"three ignored", "two stopped", "one queued"}, states); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	var one map[string]any
	_, stdout, _ = inProcess("jobs", "show", "2", "--json", "--store", db)
	if err := json.Unmarshal([]byte(stdout), &one); err != nil || one["reason"] != "stopped by hand" || one["ref"] != "two@example.org" {
		t.Errorf("%v in %s", err, stdout)
	}
	if _, stdout, _ = inProcess("jobs", "show", "2", "--store", db); !strings.Contains(stdout, "reason      stopped by hand\n") || !strings.Contains(stdout, "author      Some Author <one@example.org>\n") {
		t.Errorf("job 2:\n%s", stdout)
	}
}

// What is done to several goes on behind one that fails, and each says why; one fault
// of ours makes the whole ours.
func TestEach(t *testing.T) {
	var done []int64
	results := map[int64]error{2: usage(errors.New("no letter 2")), 3: errors.New("disk is gone"), 4: context.Canceled}
	for _, c := range []struct {
		name   string
		ids    []int64
		done   []int64
		status int
		stderr string
	}{
		{"all", []int64{1, 5}, []int64{1, 5}, statusDone, ""},
		{"one is wrong", []int64{2, 5}, []int64{2, 5}, statusUsage, "bot: no letter 2\n"},
		{"one is ours", []int64{2, 3, 5}, []int64{2, 3, 5}, statusOurs, "bot: no letter 2\nbot: disk is gone\n"},
		{"interrupted", []int64{2, 4, 5}, []int64{2, 4}, statusInterrupted, "bot: interrupted\n"},
	} {
		done = nil
		var errs bytes.Buffer
		status := say(&errs, each(c.ids, func(id int64) error {
			done = append(done, id)
			return results[id]
		}))
		if status != c.status || errs.String() != c.stderr || !cmp.Equal(done, c.done) {
			t.Errorf("%s: status %d, %q, done %v; want %d, %q, %v", c.name, status, errs.String(), done, c.status, c.stderr, c.done)
		}
	}
}
