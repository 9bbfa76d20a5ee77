package series

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDue(t *testing.T) {
	c := NewCollector(Options{})
	at := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	add := func(list ...mail) {
		t.Helper()
		for _, m := range list {
			one := m.message(t)
			one.Received = at
			if err := c.Add(one); err != nil {
				t.Fatal(err)
			}
		}
	}
	// due gives the mails of what is due, and tells that it was seen.
	due := func() (out [][]string) {
		for _, i := range c.Due(at) {
			out = append(out, c.Index().Messages(i))
			c.Told(i)
		}
		return out
	}
	check := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	add(mail{id: "a", subject: "[PATCH 1/2] x1"}, mail{id: "b", re: "a", subject: "[PATCH 2/2] x2", minute: 1}, mail{id: "z", subject: "[PATCH 1/2] other", from: "One <one@example.com>"})
	check("complete", due(), [][]string{{"a", "b"}})
	check("once", due(), [][]string(nil))
	add(mail{id: "r", re: "b", subject: "[PATCH v2 2/2] x2", minute: 5})
	check("a reroll waits", due(), [][]string(nil))
	at = at.Add(time.Hour)
	check("after waiting, without the patch of the other version", due(), [][]string{{"r"}, {"z"}})
	add(mail{id: "d", re: "c", subject: "[PATCH v3 2/2] x2", minute: 9}, mail{id: "c", subject: "[PATCH v3 1/2] x1", minute: 8})
	check("a third version", due(), [][]string{{"c", "d"}})

	x := c.Index()
	check("holding", x.Holding([]string{"b", "r", "nobody", "d", ""}), []int{0, 1, -1, 3, -1})
	for _, i := range []int{0, 1, 3} {
		check("versions", Versions(x.Replaces(), i), []int{0, 1, 3})
	}
	check("versions of another", Versions(x.Replaces(), 2), []int{2})
}
