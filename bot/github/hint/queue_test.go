package hint

import (
	"fmt"
	"testing"

	"patchbench/store/storetest"
)

// Who writes many commands while none can be worked off takes nobody's place.
func TestQueueOfOne(t *testing.T) {
	q := NewQueue(storetest.Open(t))
	command := func(login string, id int) Hint {
		return Hint{Kind: Commanded, Repo: "kit/kit", Number: 1, ID: fmt.Sprint(login, id), Login: login}
	}
	var all []Hint
	for i := range 3 * maxOfOne {
		all = append(all, command("stranger", i), Hint{Kind: Changed, Repo: "kit/kit", Number: i + 1})
	}
	all = append(all, command("maintainer", 1))
	for _, h := range all { // as the webhook adds them
		if err := q.Add(t.Context(), "", h); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add(t.Context(), "", all...); err != nil { // and polling
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, h := range q.Waiting() {
		count[h.Login]++
	}
	if count["stranger"] != maxOfOne || count["maintainer"] != 1 || count[""] != 3*maxOfOne {
		t.Errorf("what waits, by login: %v", count)
	}
	// What was worked off makes room.
	if err := q.Settle(t.Context(), q.Waiting()[0], false); err != nil {
		t.Fatal(err)
	}
	if err := q.Add(t.Context(), "", command("stranger", 1000)); err != nil {
		t.Fatal(err)
	}
	again := NewQueue(q.st)
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := again.Waiting(); got[len(got)-1].ID != "stranger1000" || len(got) != 4*maxOfOne+1 {
		t.Errorf("%d hints after another start, the last %+v", len(got), got[len(got)-1])
	}
}
