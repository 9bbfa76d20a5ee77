package watch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/store"
	"patchbench/store/storetest"
)

const trustedDKIM = "its author is trusted: DKIM of trusted.test, by mx.test"

// check compares what was decided.
func (x *world) check(what string, want ...string) {
	x.t.Helper()
	if d := cmp.Diff(append([]string{}, want...), x.jobs()); d != "" {
		x.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestSeries(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.check("a complete series", "mail a.0 v1 queued: "+trustedDKIM)
	p := x.payload("mail:a.0@x.test")
	if p.Thread.MessageID != "a.0@x.test" || p.Thread.Subject != "[PATCH 0/2] a" || p.Thread.Author.Email != "one@trusted.test" ||
		p.Thread.List != "dev@lists.test" || p.Mode != "dry-run" || len(p.Series.Patches) != 2 || len(p.Series.Patches[0].Diff) == 0 {
		t.Errorf("payload %+v", p)
	}
	x.step()
	x.restart()
	x.wait(time.Hour)
	x.check("again", "mail a.0 v1 queued: "+trustedDKIM)
}

func TestLateCover(t *testing.T) {
	x := newWorld(t)
	all := posted("a", "PATCH")
	x.get(all[1:]...)
	x.step()
	x.check("patches that answer an unknown mail wait for it")
	x.get(all[0])
	x.step()
	x.check("with it", "mail a.0 v1 queued: "+trustedDKIM)

	x = newWorld(t)
	x.get(all[1:]...)
	x.wait(coverWait)
	x.check("it does not come", "mail a.1 v1 queued: "+trustedDKIM)
	x.get(all[0])
	x.wait(time.Hour)
	x.restart()
	x.step()
	x.check("it comes later", "mail a.1 v1 queued: "+trustedDKIM)
}

func TestIncomplete(t *testing.T) {
	x := newWorld(t)
	all := posted("a", "PATCH")
	x.get(all[:2]...)
	x.wait(29 * time.Minute)
	x.check("waits")
	x.wait(time.Minute)
	x.check("has waited", "mail a.0 v1 incomplete: missing 2 of 2")
	x.restart()
	x.wait(time.Hour)
	x.check("still", "mail a.0 v1 incomplete: missing 2 of 2")
	x.get(all[2])
	x.step()
	x.check("the rest comes", "mail a.0 v1 queued: "+trustedDKIM)

	// The list of tools has the patience of an hour.
	x = newWorld(t)
	l := patch1("b", "PATCH tool", 1, 2)
	l.to = "To: tool@lists.test"
	x.get(l)
	x.wait(59 * time.Minute)
	x.check("waits longer")
	x.wait(time.Minute)
	x.check("has waited longer", "mail b.1 v1 incomplete: missing 2 of 2")
}

func TestNewVersion(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.now = x.now.Add(time.Hour)
	v2 := posted("a-v2", "PATCH v2")
	x.get(v2[:2]...)
	x.step()
	x.check("half of v2", "mail a.0 v1 queued: "+trustedDKIM)
	x.get(v2[2])
	x.step()
	want := []string{"mail a.0 v1 superseded: by mail:a-v2.0@x.test", "mail a-v2.0 v2 queued: " + trustedDKIM}
	x.check("v2", want...)
	if p := x.payload("mail:a-v2.0@x.test"); p.Previous != "mail:a.0@x.test" {
		t.Errorf("the version before is %q", p.Previous)
	}
	x.restart()
	x.step()
	x.check("after a restart", want...)

	// All came while the service was down.
	x = newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.now = x.now.Add(time.Hour)
	x.get(posted("a-v2", "PATCH v2")...)
	x.now = x.now.Add(time.Hour)
	x.get(posted("a-v3", "PATCH v3")...)
	x.step()
	x.check("three versions at once", "mail a.0 v1 superseded: by mail:a-v2.0@x.test", "mail a-v2.0 v2 superseded: by mail:a-v3.0@x.test", "mail a-v3.0 v3 queued: "+trustedDKIM)
}

// TestForgedVersion: anybody can write a v2 in somebody's name.
func TestForgedVersion(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.now = x.now.Add(time.Hour)
	for _, l := range posted("a-v2", "PATCH v2") {
		l.forged = true
		x.get(l)
	}
	x.step()
	forged := `mail a-v2.0 v2 held: "one@trusted.test" is trusted, but it is not known that this came from there: mx.test has said nothing of this mail`
	x.check("forged", "mail a.0 v1 queued: "+trustedDKIM, forged)
	x.now = x.now.Add(time.Hour)
	x.get(posted("a-v3", "PATCH v3")...)
	x.step()
	x.check("the true one", "mail a.0 v1 superseded: by mail:a-v3.0@x.test", "mail a-v2.0 v2 superseded: by mail:a-v3.0@x.test", "mail a-v3.0 v3 queued: "+trustedDKIM)

	// One forged patch among true ones.
	x = newWorld(t)
	all := posted("b", "PATCH")
	all[2].forged = true
	x.get(all...)
	x.step()
	x.check("one forged patch", `mail b.0 v1 held: "one@trusted.test" is trusted, but it is not known that this came from there: mx.test has said nothing of this mail`)
}

func TestReroll(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.now = x.now.Add(time.Hour)
	l := note{id: "r", re: "a.2", subject: "[PATCH v2 2/2] a: step 2", body: patchText + diff("f.c", "other")}
	x.get(l)
	x.step()
	x.check("waits for the others", "mail a.0 v1 queued: "+trustedDKIM)
	x.wait(30 * time.Minute)
	x.check("with a patch of v1", "mail a.0 v1 superseded: by mail:r@x.test", "mail r v2 queued: "+trustedDKIM)
	if p := x.payload("mail:r@x.test"); len(p.Series.Patches) != 2 || p.Series.Patches[0].MessageID != "a.1@x.test" || p.Series.Patches[1].MessageID != "r@x.test" {
		t.Errorf("payload %+v", p.Series)
	}
}

func TestTwoLists(t *testing.T) {
	x := newWorld(t)
	// One copy through a list that is not served, with its footer, comes first.
	for _, l := range posted("a", "PATCH") {
		l.to = "To: other@lists.test\nCc: DEV@lists.test\nList-Id: Others <other.lists.test>"
		x.get(l)
	}
	x.step()
	x.get(posted("a", "PATCH")...)
	x.step()
	x.check("twice", "mail a.0 v1 queued: "+trustedDKIM)

	// A list that is served but wants no such series, and one that does.
	x = newWorld(t)
	for _, l := range posted("b", "PATCH") {
		l.to = "To: tool@lists.test, dev@lists.test\nList-Id: <tool.lists.test>"
		x.get(l)
	}
	x.step()
	x.check("two that are served", "mail b.0 v1 queued: "+trustedDKIM)
	if p := x.payload("mail:b.0@x.test"); p.Thread.List != "dev@lists.test" {
		t.Errorf("list %q", p.Thread.List)
	}
}

// TestStores has a short history on each database that there is.
func TestStores(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		x := newWorldOn(t, st)
		x.get(posted("a", "PATCH")...)
		x.get(stranger("b")...)
		x.step()
		x.now = x.now.Add(time.Hour)
		x.get(posted("a-v2", "PATCH v2")...)
		x.get(reply("r", "b.1", "bench: run\n"), note{id: "c", subject: "[PATCH] \x00\xff", body: patchText + diff("c", "x")})
		x.step()
		want := []string{"mail a.0 v1 superseded: by mail:a-v2.0@x.test", `mail b.0 v1 queued: approved by "boss@trusted.test"`, "mail a-v2.0 v2 queued: " + trustedDKIM, "mail c v1 queued: " + trustedDKIM}
		x.check("then", want...)
		x.restart()
		x.step()
		x.check("after a restart", want...)
	})
}
