package series

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// mail is a message in short: fields with a usual value may be left out.
type mail struct {
	id, re  string // Message-ID and In-Reply-To
	subject string
	from    string // default: A U Thor <author@example.com>
	minute  int    // date
	body    string // default: a diff of file f whose content depends on the subject
	header  string // further fields
	undated bool   // without Date
}

func change(file, to string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+%[2]s\n", file, to)
}

func (m mail) message(t testing.TB) *mbox.Message {
	t.Helper()
	if m.from == "" {
		m.from = "A U Thor <author@example.com>"
	}
	if m.body == "" {
		m.body = "Why.\n---\n f | 2 +-\n\n" + change("f", m.subject) + "-- \n2.39\n"
	}
	date := time.Date(2024, 5, 1, 10, m.minute, 0, 0, time.UTC)
	head := fmt.Sprintf("From: %s\nSubject: %s\n", m.from, m.subject)
	if !m.undated {
		head += "Date: " + date.Format(time.RFC1123Z) + "\n"
	}
	if m.id != "" {
		head += "Message-ID: <" + m.id + ">\n"
	}
	if m.re != "" {
		head += "In-Reply-To: <" + m.re + ">\nReferences: <" + m.re + ">\n"
	}
	return parse(t, head+m.header+"\n"+m.body)
}

// outline tells a listing in a few lines.
func outline(l mbox.Listing) []string {
	var out []string
	for _, s := range l.Series {
		line := fmt.Sprintf("%s v%d %d/%d", s.MessageID, s.Version, s.Received, s.Total)
		if s.Cover != nil {
			line += " cover"
		}
		if len(s.Missing) > 0 {
			line += fmt.Sprint(" missing ", s.Missing)
		}
		if s.Supersedes != nil {
			line += " after " + *s.Supersedes
		}
		for _, p := range s.Patches {
			line += fmt.Sprintf(" %d=%s", p.N, p.MessageID)
		}
		for _, n := range s.Notes {
			line += "; " + n
		}
		out = append(out, line)
	}
	for _, s := range l.Skipped {
		out = append(out, "skipped "+s.MessageID+": "+s.Reason)
	}
	for _, p := range l.Problems {
		out = append(out, "problem "+p.MessageID+": "+p.Error)
	}
	return out
}

const none = "no diff\n"

var assemblies = []struct {
	name  string
	mails []mail
	want  []string
}{
	{"lone patch", []mail{{id: "a", subject: "[PATCH] x"}}, []string{"a v1 1/1 1=a"}},
	{"lone patch without a tag", []mail{{id: "a", subject: "x"}}, []string{"a v1 1/1 1=a"}},
	{"cover and two", []mail{
		{id: "c", subject: "[PATCH 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH 2/2] x2", minute: 2},
	}, []string{"c v1 2/2 cover 1=a 2=b"}},
	{"deep thread without a cover", []mail{
		{id: "a", subject: "[PATCH 1/3] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 1},
		{id: "c", re: "b", subject: "[PATCH 3/3] x3", minute: 2},
	}, []string{"a v1 3/3 1=a 2=b 3=c"}},
	{"no thread at all", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", subject: "[PATCH 2/2] x2", minute: 1},
	}, []string{"a v1 2/2 1=a 2=b"}},
	{"one missing", []mail{
		{id: "c", subject: "[PATCH v2 0/3] x", body: none},
		{id: "b", re: "c", subject: "[PATCH v2 2/3] x2", minute: 2},
	}, []string{"c v2 1/3 cover missing [1 3] 2=b"}},
	{"cover missing", []mail{
		{id: "a", re: "lost", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "b", re: "lost", subject: "[PATCH 2/2] x2", minute: 2},
	}, []string{"a v1 2/2 1=a 2=b"}},
	{"only the cover", []mail{{id: "c", subject: "[PATCH 0/3] x", body: none}}, []string{"c v1 0/3 cover missing [1 2 3]"}},
	{"cover has the version, patches do not", []mail{
		{id: "c", subject: "[PATCH net-next v3 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH 2/2] x2", minute: 2},
	}, []string{"c v3 2/2 cover 1=a 2=b"}},
	{"second version in reply to the first", []mail{
		{id: "c", subject: "[PATCH 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH 2/2] x2", minute: 2},
		{id: "c2", re: "c", subject: "[PATCH v2 0/2] x", minute: 30, body: none},
		{id: "a2", re: "c2", subject: "[PATCH v2 1/2] x1", minute: 31},
		{id: "b2", re: "c2", subject: "[PATCH v2 2/2] x2", minute: 32},
	}, []string{"c v1 2/2 cover 1=a 2=b", "c2 v2 2/2 cover after c 1=a2 2=b2"}},
	{"unnumbered repeat is a new version", []mail{
		{id: "c", subject: "[PATCH 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH 2/2] x2", minute: 2},
		{id: "a2", re: "c", subject: "[PATCH 1/2] x1", minute: 31, body: change("f", "other")},
		{id: "b2", re: "c", subject: "[PATCH 2/2] x2", minute: 32, body: change("f", "others")},
	}, []string{"c v1 2/2 cover 1=a 2=b", "a2 v2 2/2 after c 1=a2 2=b2"}},
	{"reroll of one patch", []mail{
		{id: "a", subject: "[PATCH 1/3] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 1},
		{id: "c", re: "a", subject: "[PATCH 3/3] x3", minute: 2},
		{id: "b2", re: "b", subject: "[PATCH v2 2/3] x2", minute: 20},
	}, []string{
		"a v1 3/3 1=a 2=b 3=c",
		"b2 v2 3/3 after a 1=a 2=b2 3=c; patch 1 is that of version 1; patch 3 is that of version 1",
	}},
	{"reroll of one patch in reply to its review", []mail{
		{id: "c", subject: "[PATCH v3 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH v3 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH v3 2/2] x2", minute: 2},
		{id: "r", re: "b", subject: "Re: [PATCH v3 2/2] x2", minute: 9, body: none, from: "R <r@example.org>"},
		{id: "b4", re: "r", subject: "[PATCH v4 2/2] x2", minute: 20, header: "References: <c> <b>\n"},
	}, []string{
		"c v3 2/2 cover 1=a 2=b",
		"b4 v4 2/2 after c 1=a 2=b4; patch 1 is that of version 3",
		"skipped r: a reply without a patch",
	}},
	{"reroll of two patches, one after the other", []mail{
		{id: "a", subject: "[PATCH 1/3] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 1},
		{id: "c", re: "a", subject: "[PATCH 3/3] x3", minute: 2},
		{id: "b2", re: "b", subject: "[PATCH v2 2/3] x2", minute: 20},
		{id: "c3", re: "c", subject: "[PATCH v3 3/3] x3", minute: 30},
	}, []string{
		"a v1 3/3 1=a 2=b 3=c",
		"b2 v2 3/3 after a 1=a 2=b2 3=c; patch 1 is that of version 1; patch 3 is that of version 1",
		"c3 v3 3/3 after b2 1=a 2=b2 3=c3; patch 1 is that of version 2; patch 2 is that of version 2",
	}},
	{"reroll of an incomplete series", []mail{
		{id: "a", subject: "[PATCH 1/3] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 1},
		{id: "b2", re: "b", subject: "[PATCH v2 2/3] x2", minute: 20},
	}, []string{
		"a v1 2/3 missing [3] 1=a 2=b",
		"b2 v2 2/3 missing [3] after a 1=a 2=b2; patch 1 is that of version 1",
	}},
	{"a second version that has not come in whole is no reroll", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "a2", re: "b", subject: "[PATCH v2 1/2] x1", minute: 20, header: "References: <a>\n"},
	}, []string{"a v1 2/2 1=a 2=b", "a2 v2 1/2 missing [2] after a 1=a2"}},
	{"resend of a whole series", []mail{
		{id: "a", subject: "[PATCH v2 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH v2 2/2] x2", minute: 1},
		{id: "a1", subject: "[PATCH RESEND v2 1/2] x1", minute: 50, body: change("f", "1")},
		{id: "b1", re: "a1", subject: "[PATCH RESEND v2 2/2] x2", minute: 51, body: change("f", "2")},
	}, []string{"a v2 2/2 1=a 2=b", "a1 v2 2/2 after a 1=a1 2=b1"}},
	{"total not known", []mail{
		{id: "a", subject: "[PATCH 1/n] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/n] x2", minute: 1},
		{id: "d", re: "a", subject: "[PATCH 4/n] x4", minute: 2},
	}, []string{"a v1 3/4 missing [3] 1=a 2=b 4=d"}},
	{"two versions in reply to one cover, neither whole", []mail{
		{id: "c", subject: "[PATCH 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH 1/2] x1", minute: 1},
		{id: "a2", re: "c", subject: "[PATCH v2 1/2] x1", minute: 30},
	}, []string{"c v1 1/2 cover missing [2] 1=a", "a2 v2 1/2 missing [2] after c 1=a2"}},
	{"taken over by another author", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "o", re: "a", subject: "[PATCH v2 1/2] x1", minute: 30, from: "Other <other@example.org>"},
		{id: "p", re: "o", subject: "[PATCH v2 2/2] x2", minute: 31, from: "Other <other@example.org>"},
	}, []string{"a v1 2/2 1=a 2=b", "o v2 2/2 1=o 2=p"}},
	{"replacement with a cover of its own", []mail{
		{id: "c", subject: "[PATCH v2 0/2] x", body: none},
		{id: "a", re: "c", subject: "[PATCH v2 1/2] x1", minute: 1},
		{id: "b", re: "c", subject: "[PATCH v2 2/2] x2", minute: 2},
		{id: "c1", re: "c", subject: "[PATCH v2.1 0/2] x", minute: 20, body: none},
		{id: "b1", re: "c1", subject: "[PATCH v2.1 2/2] x2", minute: 21},
	}, []string{
		"c1 v2 2/2 cover 1=a 2=b1; patch 2 is that of v2.1",
		"skipped c: replaced by v2.1 0/2", "skipped b: replaced by v2.1 2/2",
	}},
	{"replacement that came without its series", []mail{
		{id: "b1", subject: "[PATCH v5.1 2/3] x2"},
	}, []string{"b1 v5 1/3 missing [1 3] 2=b1"}},
	{"no Date", []mail{
		{id: "a", subject: "[PATCH 1/2] x1", header: "Received: by mx; Wed, 1 May 2024 10:00:30 +0000\n", undated: true},
		{id: "b", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "z", subject: "[PATCH] y", undated: true},
	}, []string{"z v1 1/1 1=z", "a v1 2/2 1=a 2=b"}},
	{"replacement within a version", []mail{
		{id: "a", subject: "[PATCH v5 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH v5 2/2] x2", minute: 1},
		{id: "b1", re: "b", subject: "[PATCH v5.1 2/2] x2", minute: 20},
	}, []string{
		"a v5 2/2 1=a 2=b1; patch 2 is that of v5.1",
		"skipped b: replaced by v5.1 2/2",
	}},
	{"resend of a part, unchanged", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1, body: change("f", "two")},
		{id: "b1", re: "a", subject: "[PATCH RESEND 2/2] x2", minute: 20, body: change("f", "two")},
	}, []string{"a v1 2/2 1=a 2=b", "skipped b1: sent again, unchanged; the first copy is used"}},
	{"fork by another author", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "o", re: "b", subject: "[PATCH 2/2] x2 done otherwise", minute: 30, from: "Other <other@example.org>"},
	}, []string{"a v1 2/2 1=a 2=b", "o v1 1/2 missing [1] 2=o"}},
	{"two series in a thread", []mail{
		{id: "a", subject: "[PATCH] x"},
		{id: "b", re: "a", subject: "[PATCH] something else", minute: 10},
	}, []string{"a v1 1/1 1=a", "b v1 1/1 1=b"}},
	{"replies", []mail{
		{id: "a", subject: "[PATCH] x"},
		{id: "r", re: "a", subject: "Re: [PATCH] x", minute: 1, body: "> " + strings.ReplaceAll(change("f", "q"), "\n", "\n> ") + "\nGood.\n", from: "R <r@example.org>"},
		{id: "d", re: "a", subject: "Re: [PATCH] x", minute: 2, body: "James\n\nhow about\n\n" + change("f", "r"), from: "R <r@example.org>"},
		{id: "s", re: "a", subject: "Re: [PATCH] x", minute: 3, body: "how about\n\n-- >8 --\nSubject: [PATCH] y instead\n\nBecause.\n---\n" + change("f", "s"), from: "R <r@example.org>"},
		{id: "u", subject: "Re: [PATCH] z", re: "unknown", minute: 4},
	}, []string{
		"a v1 1/1 1=a", "s v1 1/1 1=s", "u v1 1/1 1=u",
		"skipped r: a reply without a patch",
		"skipped d: a reply with a diff that is a comment: no scissors, From, Subject or [PATCH] line before it",
	}},
	{"cover of a lone patch", []mail{
		{id: "c", subject: "speed up x", body: none},
		{id: "a", re: "c", subject: "[PATCH] x", minute: 1},
	}, []string{"c v1 1/1 cover 1=a"}},
	{"a report is no cover", []mail{
		{id: "c", subject: "x is slow", body: none, from: "User <user@example.org>"},
		{id: "a", re: "c", subject: "[PATCH] x", minute: 1},
	}, []string{"a v1 1/1 1=a", "skipped c: no diff in it"}},
	{"doubles through two lists", []mail{
		{id: "a", subject: "[PATCH] x", header: "List-Id: One <one.example.com>\n", body: change("f", "1")},
		{id: "a", subject: "[two] [PATCH] x", header: "List-Id: Two <two.example.com>\n", body: change("f", "1") + "____\nfooter\n"},
		{id: "new-id", subject: "[three] [PATCH] x", body: change("f", "1") + "____\nanother footer\n"},
	}, []string{"a v1 1/1 1=a", "skipped a: a double of test", "skipped new-id: a double of test"}},
	{"an extra patch", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "c", re: "a", subject: "[PATCH 3/2] x3", minute: 2},
	}, []string{"a v1 2/2 1=a 2=b 3=c"}},
	{"pull requests", []mail{
		{id: "a", subject: "[GIT PULL] x"},
		{id: "b", subject: "[PULL 1/1] x", minute: 1},
	}, []string{"b v1 1/1 1=b", "skipped a: a pull request"}},
	{"too many", []mail{{id: "a", subject: "[PATCH 1/500] x"}}, []string{"skipped a: series of 500 patches, limit 100"}},
	{"no author", []mail{{id: "a", subject: "[PATCH] x", from: "nobody"}}, []string{"problem a: no author: From has no address"}},
	{"senders behind a gateway", []mail{
		{id: "a", subject: "[PATCH 1/1] x", from: "A B via Gateway <gate@example.com>"},
		{id: "b", subject: "[PATCH 1/1] x", from: "C D via Gateway <gate@example.com>", minute: 1},
	}, []string{"a v1 1/1 1=a", "b v1 1/1 1=b"}},
	{"Mercurial fields before the subject", []mail{
		{id: "i", subject: "[PATCH 0 of 2] x", body: none},
		{id: "a", re: "i", subject: "[PATCH 1 of 2] x1", minute: 1, header: "X-Mercurial-Series-Index: 1\nX-Mercurial-Series-Total: 2\nX-Mercurial-Series-Id: <a>\n"},
		{id: "b", re: "i", subject: "spoiled", minute: 2, header: "X-Mercurial-Series-Index: 2\nX-Mercurial-Series-Total: 2\nX-Mercurial-Series-Id: <a>\n"},
	}, []string{"i v1 2/2 cover 1=a 2=b"}},
	{"a Message-ID used twice", []mail{
		{id: "a", subject: "[PATCH] x", body: change("f", "1")},
		{id: "a", subject: "[PATCH] y", body: change("g", "2"), minute: 1},
	}, []string{"a v1 1/1 1=a", "skipped a: its Message-ID belongs to another mail with other content (test)"}},
	{"two sent within an hour, neither in a thread", []mail{
		{id: "a", subject: "[PATCH v2 1/2] x1"},
		{id: "b", subject: "[PATCH v2 2/2] x2", minute: 1},
		{id: "c", subject: "[PATCH v2 1/2] y1", minute: 40},
		{id: "d", subject: "[PATCH v2 2/2] y2", minute: 41},
	}, []string{"a v2 2/2 1=a 2=b", "c v2 2/2 1=c 2=d"}},
	{"each patch in reply to its first version", []mail{
		{id: "a", subject: "[PATCH 1/2] x1"},
		{id: "b", subject: "[PATCH 2/2] x2", minute: 1},
		{id: "a2", re: "a", subject: "[PATCH v2 1/2] x1", minute: 30},
		{id: "b2", re: "b", subject: "[PATCH v2 2/2] x2", minute: 31},
	}, []string{"a v1 2/2 1=a 2=b", "a2 v2 2/2 after a 1=a2 2=b2"}},
	{"third version in reply to the second, supersedes named", []mail{
		{id: "a@x", subject: "[PATCH] x"},
		{id: "b@x", subject: "[PATCH v2] x done better", minute: 10, body: "y\n\nSupersedes: <a@x>\n---\n" + change("g", "1")},
		{id: "c@x", re: "b@x", subject: "[PATCH v3] x done best", minute: 20},
	}, []string{"a@x v1 1/1 1=a@x", "b@x v2 1/1 after a@x 1=b@x", "c@x v3 1/1 after b@x 1=c@x"}},
	{"tag of the tracker is no version", []mail{
		{id: "a", subject: "[bug#60788] [PATCH 1/2] x1"},
		{id: "b", re: "a", subject: "[bug#60789] [PATCH 2/2] x2", minute: 1},
	}, []string{"a v1 2/2 1=a 2=b"}},
	{"format-patch --thread of several authors, over some seconds", []mail{
		{id: "4f1c.1714557599.git.me@example.org", subject: "[PATCH 1/4] x1", from: "A <a@example.org>"},
		{id: "7d2a.1714557600.git.me@example.org", re: "4f1c.1714557599.git.me@example.org", subject: "[PATCH 2/4] x2", from: "B <b@example.org>", minute: 1},
		{id: "0b39.1714557600.git.me@example.org", re: "4f1c.1714557599.git.me@example.org", subject: "[PATCH 3/4] x3", from: "C <c@example.org>", minute: 2},
		{id: "c5e8.1714557612.git.me@example.org", re: "4f1c.1714557599.git.me@example.org", subject: "[PATCH 4/4] x4", from: "B <b@example.org>", minute: 3},
	}, []string{"4f1c.1714557599.git.me@example.org v1 4/4 1=4f1c.1714557599.git.me@example.org 2=7d2a.1714557600.git.me@example.org 3=0b39.1714557600.git.me@example.org 4=c5e8.1714557612.git.me@example.org"}},
	{"one host and nearly one time, but two senders", []mail{
		{id: "1714557599@example.org", subject: "[PATCH 1/2] x1", from: "A <a@example.org>"},
		{id: "1714557600@example.org", re: "1714557599@example.org", subject: "[PATCH 2/2] x2", from: "B <b@example.org>", minute: 1},
	}, []string{"1714557599@example.org v1 1/2 missing [2] 1=1714557599@example.org", "1714557600@example.org v1 1/2 missing [1] 2=1714557600@example.org"}},
}

func TestAssembly(t *testing.T) {
	for _, tc := range assemblies {
		t.Run(tc.name, func(t *testing.T) {
			var messages []*mbox.Message
			for _, m := range tc.mails {
				messages = append(messages, m.message(t))
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for round := range 12 {
				c := NewCollector(Options{})
				for _, m := range messages {
					c.Add(m)
				}
				if d := cmp.Diff(tc.want, outline(must(c.Listing()))); d != "" {
					t.Fatalf("order %d (-want +got):\n%s", round, d)
				}
				rnd.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
			}
		})
	}
}

// TestHgExport has the patches of hg export, which no subject numbers.
func TestHgExport(t *testing.T) {
	file := ""
	for i, name := range []string{"one", "two", "three"} {
		file += fmt.Sprintf("# HG changeset patch\n# User A U Thor <author@example.com>\n# Date %d 0\n# Node ID %d%039d\n%s\n\ndiff -r 0 -r 1 f\n--- a/f\tx\n+++ b/f\tx\n@@ -1 +1 @@\n-a\n+%s\n", 1163373405-i, i, i, name, name)
	}
	c := NewCollector(Options{})
	r := mbox.NewReader(strings.NewReader(file), "x.patch")
	for {
		m, p, err := r.Next()
		if err != nil {
			break
		}
		if p != nil {
			t.Fatal(p)
		}
		c.Add(m)
	}
	l := must(c.Listing())
	if d := cmp.Diff([]string{" v1 3/3 1= 2= 3="}, outline(l)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	for i, want := range []string{"one", "two", "three"} {
		if got := l.Series[0].Patches[i].Subject; got != want {
			t.Errorf("patch %d is %q, want %q", i+1, got, want)
		}
	}
}

// TestHgParent has first patches that do and do not have a parent.
func TestHgParent(t *testing.T) {
	for _, tc := range []struct{ name, parent, want string }{
		{"named", strings.Repeat("1f", 20), strings.Repeat("1f", 20)},
		{"of the first change of all", strings.Repeat("0", 40), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCollector(Options{})
			c.Add(mail{id: "a@x", subject: "[PATCH] x", body: "# HG changeset patch\n# User A U Thor <author@example.com>\n# Date 0 0\n# Node ID " + strings.Repeat("2e", 20) + "\n# Parent  " + tc.parent + "\nx\n\n" + change("f", "1")}.message(t))
			l := must(c.Listing())
			got := ""
			if s := l.Series[0]; s.Base != nil {
				got = s.Base.Commit + " " + s.Base.How
			}
			if tc.want != "" {
				tc.want += " " + mbox.HowParentNode
			}
			if got != tc.want {
				t.Errorf("base %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	start := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	c := NewCollector(Options{})
	add := func(at time.Duration, m mail) {
		msg := m.message(t)
		msg.Received = start.Add(at)
		c.Add(msg)
	}
	ready := func(at time.Duration) []string { return outline(mbox.Listing{Series: must(c.Ready(start.Add(at)))}) }
	want := func(at time.Duration, lines ...string) {
		t.Helper()
		if d := cmp.Diff(lines, ready(at)); d != "" {
			t.Errorf("after %v (-want +got):\n%s", at, d)
		}
	}
	add(0, mail{id: "a", subject: "[PATCH 1/3] x1"})
	want(time.Minute)
	add(20*time.Minute, mail{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 99})
	want(45 * time.Minute)
	want(50*time.Minute, "a v1 2/3 missing [3] 1=a 2=b")
	want(60 * time.Minute)
	add(70*time.Minute, mail{id: "c", re: "a", subject: "[PATCH 3/3] x3"})
	want(71*time.Minute, "a v1 3/3 1=a 2=b 3=c")
	want(72 * time.Minute)
	add(80*time.Minute, mail{id: "p", subject: "[PATCH] y"})
	want(80*time.Minute, "p v1 1/1 1=p")
	// A reroll of single patches may be a whole version whose rest is on its way.
	add(90*time.Minute, mail{id: "b2", re: "b", subject: "[PATCH v2 2/3] x2", body: change("f", "new")})
	want(100 * time.Minute)
	want(120*time.Minute, "b2 v2 3/3 after a 1=a 2=b2 3=c; patch 1 is that of version 1; patch 3 is that of version 1")
}

func TestHints(t *testing.T) {
	c := NewCollector(Options{})
	c.Add(mail{id: "a", subject: "[PATCH] x", body: "Why.\n\nDepends-on: <one@example.com>\nBased-on: https://lists.example.com/r/two@example.com/\n---\nSupersedes: <old@example.com>\n" +
		change("f", "1") + "\nbase-commit: 0123456789ABCDEF0123456789abcdef01234567\nprerequisite-patch-id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n-- \n2.39\n"}.message(t))
	s := must(c.Listing()).Series[0]
	old := "old@example.com"
	want := mbox.Series{
		Base:       &mbox.Base{Commit: "0123456789abcdef0123456789abcdef01234567", How: mbox.HowBaseCommit, Reason: "the mail says base-commit"},
		Supersedes: &old,
		Prerequisites: []mbox.Prerequisite{
			{MessageID: "one@example.com"}, {MessageID: "two@example.com"},
			{PatchID: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		},
	}
	got := mbox.Series{Base: s.Base, Supersedes: s.Supersedes, Prerequisites: s.Prerequisites}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestChoose(t *testing.T) {
	collect := func(mails ...mail) *Index {
		c := NewCollector(Options{})
		for _, m := range mails {
			c.Add(m.message(t))
		}
		return c.Index()
	}
	two := collect(
		mail{id: "a", subject: "[PATCH 1/3] x1"}, mail{id: "b", re: "a", subject: "[PATCH 2/3] x2", minute: 1},
		mail{id: "a2", re: "a", subject: "[PATCH v2 1/4] x1", minute: 20}, mail{id: "b2", re: "a2", subject: "[PATCH v2 2/4] x2", minute: 21},
		mail{id: "c2", re: "a2", subject: "[PATCH v2 4/4] x4", minute: 23},
	)
	files := collect(
		mail{subject: "[PATCH 1/2] x1"}, mail{subject: "[PATCH 2/2] x2", from: "B <b@example.com>"},
		mail{subject: "[PATCH v2 1/2] x1"}, mail{subject: "[PATCH v2 2/2] x2", from: "B <b@example.com>"},
	)
	forks := collect(
		mail{id: "a1", subject: "[PATCH] x"}, mail{id: "a2", re: "a1", subject: "[PATCH v2] x", minute: 5},
		mail{id: "b", re: "a1", subject: "[PATCH] another way", minute: 9, from: "Other <other@example.org>"},
	)
	other := collect(mail{id: "a", subject: "[PATCH] x"}, mail{id: "b", subject: "[PATCH] y", minute: 1})
	for _, tc := range []struct {
		name    string
		index   *Index
		version int
		patches string
		want    string
		err     string

		messages []string
	}{
		{name: "several, one named", index: other, messages: []string{"b"}, want: "b v1 1/1 1=b"},
		{name: "named by its first version", index: forks, messages: []string{"a1"}, want: "a2 v2 1/1 after a1 1=a2"},
		{name: "named by a reply", index: other, messages: []string{"r"}, err: "2 series in this mail; give a file that holds only one of them:\n  x <a>\n  y <b>"},
		{name: "newest", index: two, want: "a2 v2 3/4 missing [3] after a 1=a2 2=b2 4=c2"},
		{name: "first version", index: two, version: 1, want: "a v1 2/3 missing [3] 1=a 2=b"},
		{name: "no such version", index: two, version: 7, err: "no version 7 of the series in this mail; there is v1, v2"},
		{name: "some patches", index: two, patches: "1-2", want: "a2 v2 2/4 after a 1=a2 2=b2"},
		{name: "open range", index: two, patches: "2-", want: "a2 v2 2/4 missing [3] after a 2=b2 4=c2"},
		{name: "none there", index: two, patches: "3", err: "patches 3: none of them is in the mail; there are 1, 2, 4"},
		{name: "bad numbers", index: two, patches: "1-9", err: `patches "1-9": want numbers from 1 to 4 as in 1-3,5`},
		{name: "several", index: other, err: "2 series in this mail; give a file that holds only one of them:\n  x <a>\n  y <b>"},
		{name: "files without ids", index: files, want: " v2 2/2 1= 2="},
		{name: "nothing", index: collect(), err: "no patches found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, s, err := tc.index.Choose(Choice{Version: tc.version, Patches: tc.patches, Messages: tc.messages})
			got := ""
			if s != nil {
				got = outline(mbox.Listing{Series: []mbox.Series{*s}})[0]
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if d := cmp.Diff([]string{tc.want, tc.err}, []string{got, message}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestImpossibleDates has mails whose Date cannot be: when they were received
// counts then.
func TestImpossibleDates(t *testing.T) {
	received := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	for _, date := range []string{"Thu, 1 Jan 1970 00:00:00 +0000", "Fri, 01 Jan 2099 00:00:00 +0000", "nonsense"} {
		c := NewCollector(Options{})
		for i, subject := range []string{"[PATCH] first", "[PATCH] second", "[PATCH] third"} {
			at := received.Add(time.Duration(i) * time.Minute)
			dated := at.Format(time.RFC1123Z)
			if i == 1 {
				dated = date
			}
			m := parse(t, fmt.Sprintf("From: a@example.org\nMessage-ID: <%d@x>\nSubject: %s\nDate: %s\n\n%s", i, subject, dated, change("f", subject)))
			m.Received = at
			c.Add(m)
		}
		var got []string
		for _, s := range must(c.Listing()).Series {
			got = append(got, s.Subject)
		}
		if d := cmp.Diff([]string{"first", "second", "third"}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", date, d)
		}
	}
}
