package series

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/series/spill"
	"patchbench/mbox/tree/diff"
)

// read puts a mailbox into a collector.
func read(t testing.TB, data []byte, c *Collector) {
	t.Helper()
	r := mbox.NewReader(bytes.NewReader(data), "in.mbox")
	for {
		m, p, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil || p != nil {
			t.Fatal(p, err)
		}
		if err := c.Add(m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeeper lists the same whether mails are kept in memory or in a file.
func TestKeeper(t *testing.T) {
	data := archive(120)
	file := spill.New(t.TempDir())
	defer file.Close()
	inMemory, inFile := NewCollector(Options{}), NewCollector(Options{Keeper: file})
	read(t, data, inMemory)
	read(t, data, inFile)
	want, got := must(inMemory.Listing()), must(inFile.Listing())
	if !reflect.DeepEqual(want, got) { // cmp takes long for the bytes of diffs
		t.Errorf("in memory %d series, in a file %d, or others", len(want.Series), len(got.Series))
	}
	if len(want.Series) != 120 || len(want.Series[0].Patches[4].Diff) < 8000 {
		t.Errorf("%d series", len(want.Series))
	}
}

// lossy takes all that is written, or fails, and gives nothing back.
type lossy struct{ full error }

func (l lossy) Write(b []byte) (int, error)       { return len(b), l.full }
func (l lossy) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

// TestKeeperFails has every way out of a collector say that its Keeper failed.
func TestKeeperFails(t *testing.T) {
	full := errors.New("full")
	c := NewCollector(Options{Keeper: lossy{full: full}})
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = c.Add(mail{id: fmt.Sprint(i), subject: "[PATCH] x", body: change("f", strings.Repeat("x", 64<<10))}.message(t))
	}
	if !errors.Is(err, full) {
		t.Errorf("Add: %v, want %v", err, full)
	}

	c = NewCollector(Options{Keeper: lossy{}})
	if err := c.AddProblem(mbox.Problem{Error: "broken"}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		subject := "[PATCH] x"
		if i%2 == 0 {
			subject = "Re: [PATCH] x"
		}
		if err := c.Add(mail{id: fmt.Sprint(i), re: "20", subject: subject, body: strings.Repeat("y\n", 64<<10) + change("f", "x")}.message(t)); err != nil {
			t.Fatal(err)
		}
	}
	x := c.Index()
	_, listing := c.Listing()
	_, ready := c.Ready(mail{}.message(t).Date)
	_, _, chosen := x.Choose(Choice{})
	_, one := x.Series(0)
	var skipped, problem error
	for _, err := range x.Skipped(true) {
		skipped = err
	}
	for _, err := range x.Problems() {
		problem = err
	}
	for name, err := range map[string]error{"Listing": listing, "Ready": ready, "Choose": chosen, "Series": one, "Skipped": skipped, "Problems": problem} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v, want %v", name, err, io.ErrClosedPipe)
		}
	}
}

func TestReplaces(t *testing.T) {
	c := NewCollector(Options{})
	for _, m := range []mail{
		{id: "a", subject: "[PATCH] x"}, {id: "b", subject: "[PATCH] y", minute: 1},
		{id: "a2", re: "a", subject: "[PATCH v2] x", minute: 2}, {id: "a3", re: "a", subject: "[PATCH v3] x", minute: 3},
		{id: "c", subject: "[PATCH] z", minute: 4, body: "Why.\n\nSupersedes: <elsewhere@x>\n---\n" + change("f", "z")},
	} {
		c.Add(m.message(t))
	}
	if d := cmp.Diff([]int{-1, -1, 0, 2, -1}, c.Index().Replaces()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSkippedGrouped has messages in no series by time and by reason.
func TestSkippedGrouped(t *testing.T) {
	c := NewCollector(Options{})
	for i, m := range []mail{
		{id: "r1", re: "a", subject: "Re: x", body: none}, {id: "p1", subject: "[GIT PULL] x", body: none}, {id: "r2", re: "a", subject: "Re: x", body: none},
		{id: "d1", subject: "[PATCH] d", body: change("f", "d")},
		{id: "d1", subject: "[two] [PATCH] d", header: "List-Id: <two>\n", body: change("f", "d")}, {id: "p2", subject: "[GIT PULL] y", body: none},
	} {
		m.minute = i
		msg := m.message(t)
		msg.Position = fmt.Sprint("mail ", i)
		c.Add(msg)
	}
	list := func(grouped bool) (out []string) {
		for s, err := range c.Index().Skipped(grouped) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s.MessageID+": "+s.Reason)
		}
		return out
	}
	reply, pull, double := "a reply without a patch", "a pull request", "a double of mail 3"
	want := []string{"r1: " + reply, "r2: " + reply, "p1: " + pull, "p2: " + pull, "d1: " + double}
	if d := cmp.Diff(want, list(true)); d != "" {
		t.Errorf("by reason (-want +got):\n%s", d)
	}
	want = []string{"r1: " + reply, "p1: " + pull, "r2: " + reply, "d1: " + double, "p2: " + pull}
	if d := cmp.Diff(want, list(false)); d != "" || c.Index().SkippedLen() != len(want) {
		t.Errorf("by time (-want +got):\n%s", d)
	}
}

// TestNeeds finds what series build on, by what each of them names.
func TestNeeds(t *testing.T) {
	c := NewCollector(Options{})
	first := change("f", "first")
	for i, m := range []mail{
		{id: "a0@x", subject: "[PATCH 0/2] a", body: none}, {id: "a1@x", re: "a0@x", subject: "[PATCH 1/2] a1", body: "a\n---\n" + first},
		{id: "a2@x", re: "a0@x", subject: "[PATCH 2/2] a2"},
		{id: "b@x", subject: "[PATCH] cover named", body: "b\n\nDepends-on: <a0@x>\n---\n" + change("g", "b")},
		{id: "c@x", subject: "[PATCH] patch and itself named", body: "c\n\nDepends-on: <a2@x>\nDepends-on: <c@x>\nBased-on: <elsewhere@x>\n---\n" + change("g", "c")},
		{id: "d@x", subject: "[PATCH] patch id named", body: "d\n---\n" + change("g", "d") + "\nprerequisite-patch-id: " + strings.ToUpper(diff.PatchID([]byte(first))) + "\n"},
		{id: "e@x", subject: "[PATCH] two named", body: "e\n\nDepends-on: <d@x>\nDepends-on: <a1@x>\n---\n" + change("g", "e")},
		{id: "f@x", subject: "[PATCH] none named"},
	} {
		m.minute = i
		c.Add(m.message(t))
	}
	got, err := c.Index().Needs()
	if d := cmp.Diff(map[int][]int{1: {0}, 2: {0}, 3: {0}, 4: {0, 3}}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// TestChooseFromMany names some of the series there are.
func TestChooseFromMany(t *testing.T) {
	c := NewCollector(Options{})
	for i := range 50 {
		c.Add(mail{id: fmt.Sprintf("%02d", i), subject: fmt.Sprint("[PATCH] change ", i), minute: i}.message(t))
	}
	_, _, err := c.Index().Choose(Choice{})
	var choice *ChoiceError
	if !errors.As(err, &choice) || len(choice.Series) != mostNamed || choice.More != 30 {
		t.Fatalf("%+v", choice)
	}
	lines := strings.Split(err.Error(), "\n")
	if d := cmp.Diff([]string{"  change 19 <19>", "  and 30 more"}, lines[mostNamed:]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	except := make(map[int]bool)
	for i := range 50 {
		except[i] = i != 33
	}
	i, s, err := c.Index().Choose(Choice{Except: except})
	if err != nil || i != 33 || s.MessageID != "33" {
		t.Errorf("%d, %+v, %v", i, s, err)
	}
	if !slices.Equal(s.Missing, []int{}) || !s.Complete {
		t.Errorf("missing %v", s.Missing)
	}
}
