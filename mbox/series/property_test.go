package series

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// traffic makes a list's mail of an hour: series with and without covers, versions,
// rerolls, resends, replies, forks, doubles, and parts that got lost.
func traffic(t testing.TB, rnd *rand.Rand) []*mbox.Message {
	var mails []mail
	minute := 0
	people := []string{"A U Thor <author@example.com>", "B <b@example.org>", "C via Gateway <gate@example.net>"}
	pick := func(s ...string) string { return s[rnd.IntN(len(s))] }
	add := func(m mail) string {
		m.id = fmt.Sprintf("%d.%d@x", len(mails), rnd.IntN(1000))
		m.minute = minute
		minute += rnd.IntN(3)
		m.undated = rnd.IntN(20) == 0
		mails = append(mails, m)
		return m.id
	}
	for len(mails) < 4+rnd.IntN(20) {
		who := people[rnd.IntN(len(people))]
		total := 1 + rnd.IntN(4)
		topic := pick("slab", "table", "net")
		tag := pick("", "", " v2", " v3", " RESEND", " v2.1")
		of := pick("/", "/", " of ")
		under := ""
		if len(mails) > 0 && rnd.IntN(2) == 0 {
			under = mails[rnd.IntN(len(mails))].id
		}
		first := under
		switch rnd.IntN(6) {
		case 0: // a reply
			add(mail{re: under, subject: "Re: [PATCH] " + topic, from: people[rnd.IntN(len(people))], body: pick(none, change("f", "reply"), "-- >8 --\n"+change("f", "cut"))})
			continue
		case 1: // a lone patch
			add(mail{re: under, subject: "[PATCH" + tag + "] " + topic, from: who})
			continue
		case 2: // one patch again
			n := 1 + rnd.IntN(total)
			add(mail{re: under, subject: fmt.Sprintf("[PATCH%s %d%s%d] %s %d", tag, n, of, total, topic, n), from: who})
			continue
		case 3:
			first = add(mail{re: under, subject: fmt.Sprintf("[PATCH%s 0%s%d] %s", tag, of, total, topic), from: who, body: none})
		}
		for n := 1; n <= total+rnd.IntN(8)/7; n++ {
			if rnd.IntN(8) == 0 {
				continue // lost
			}
			id := add(mail{re: first, subject: fmt.Sprintf("[PATCH%s %d%s%d] %s %d", tag, n, of, total, topic, n), from: who, body: change(pick("f", "g"), fmt.Sprint(topic, n, tag))})
			if first == "" {
				first = id
			}
		}
	}
	var out []*mbox.Message
	for _, m := range mails {
		out = append(out, m.message(t))
		switch rnd.IntN(12) {
		case 0: // through another list
			m.header += "List-Id: <two.example.com>\n"
			m.subject = "[two] " + m.subject
			out = append(out, m.message(t))
		case 1: // with another Message-ID
			m.id += ".again"
			out = append(out, m.message(t))
		}
	}
	return out
}

// must is for what fails only if a Keeper does.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func listing(messages []*mbox.Message) mbox.Listing {
	c := NewCollector(Options{})
	for _, m := range messages {
		c.Add(m)
	}
	return must(c.Listing())
}

// TestOrderChangesNothing adds the same mails in any order, starting with any of
// them, all at once and one by one.
func TestOrderChangesNothing(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		messages := traffic(t, rnd)
		want := listing(messages)
		if bad := vanished(messages, want); bad != "" {
			t.Fatalf("seed %d: %s", seed, bad)
		}
		for start := range messages {
			turned := append(slices.Clone(messages[start:]), messages[:start]...)
			if d := differ(want, listing(turned)); d != "" {
				t.Fatalf("seed %d, starting from %s (-want +got):\n%s", seed, turned[0].ID, d)
			}
		}
		rnd.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		c := NewCollector(Options{})
		for _, m := range messages {
			c.Add(m)
			c.Listing() // must not leave traces
		}
		if d := differ(want, must(c.Listing())); d != "" {
			t.Fatalf("seed %d, one by one (-want +got):\n%s", seed, d)
		}
	}
}

// differ is cmp.Diff, which takes long to find that two listings are the same.
func differ(want, got mbox.Listing) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// vanished says which message is in none of series, skipped and problems, or in
// more than one of them.
func vanished(messages []*mbox.Message, l mbox.Listing) string {
	had := make(map[string]int)
	for _, m := range messages {
		had[m.ID]++
	}
	in := make(map[string]bool)
	for _, s := range l.Series {
		if s.Cover != nil {
			in[s.Cover.MessageID] = true
		}
		for _, p := range s.Patches {
			in[p.MessageID] = true
		}
	}
	got := make(map[string]int)
	for id := range in {
		got[id]++
	}
	for _, s := range l.Skipped {
		got[s.MessageID]++
	}
	for _, p := range l.Problems {
		got[p.MessageID]++
	}
	// Without an id messages can only be counted together.
	if got[""] > 0 && had[""] > 0 {
		delete(got, "")
		delete(had, "")
	}
	return cmp.Diff(had, got)
}

// FuzzCollector reads a mailbox and assembles what is in it.
func FuzzCollector(f *testing.F) {
	for seed := range uint64(4) {
		var box bytes.Buffer
		messages := traffic(f, rand.New(rand.NewPCG(seed, 4)))
		if err := mbox.Write(&box, messages[:min(len(messages), 6)]...); err != nil {
			f.Fatal(err)
		}
		f.Add(box.Bytes())
	}
	f.Add([]byte("# HG changeset patch\n# User a\none\n\n" + change("f", "1") + "# HG changeset patch\n# User b\ntwo\n\n" + change("f", "2")))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := mbox.NewReader(bytes.NewReader(in), "fuzz")
		var messages []*mbox.Message
		for {
			m, _, err := r.Next()
			if err == io.EOF {
				break
			}
			if m != nil {
				m.Position = "fuzz"
				messages = append(messages, m)
			}
		}
		l := listing(messages)
		if bad := vanished(messages, l); bad != "" {
			t.Fatalf("a message vanished (-had +listed):\n%s", bad)
		}
		if slices.ContainsFunc(messages, func(m *mbox.Message) bool { return m.ID == "" }) {
			return // files count in their order
		}
		slices.Reverse(messages)
		again := listing(messages)
		slices.Reverse(again.Problems) // they are listed as they came
		if d := cmp.Diff(l, again); d != "" {
			t.Errorf("the order of arrival matters (-want +got):\n%s", d)
		}
	})
}
