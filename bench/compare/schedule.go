package compare

import (
	"slices"
	"time"
)

// Feed is a benchmark that may be given rounds.
type Feed struct {
	Rounds int           // that it had
	Cost   time.Duration // of one more round; 0 means that it cannot be run
	// Needs are, for every step of its rows that is open, about how many rounds
	// in all would decide it: Open.Needs.
	Needs []int
	// Weight is how many times as much as others a step of the benchmark is worth;
	// 0 is 1.
	Weight float64
}

// Turn is what to run until rows are judged again.
type Turn struct {
	// Goals are the rounds in all that each benchmark is to have, in the order
	// given; its Rounds where it is not fed.
	Goals []int
	// Left is about how long it takes until all is decided that can be.
	Left time.Duration
	// Starved says that open steps are left aside because the time left would
	// not decide them.
	Starved bool
}

// Ended says that nothing is to be run.
func (t Turn) Ended(list []Feed) bool {
	for i, f := range list {
		if t.Goals[i] > f.Rounds {
			return false
		}
	}
	return true
}

// Next spends the time that is left where it decides most: every benchmark gets
// the rounds of the first look, then those whose open steps cost least time
// each, as far as the estimates fit into left together. What does not fit is
// starved, and looked at again when the others are judged; below 20 rounds, where
// estimates are rough, the cheapest is fed all the same. No benchmark is led past
// its next look. A negative left means that time is not bounded; nil looks means
// Looks.
//
// Cheapest first decides the largest number of steps within a given time, as
// shortest-job-first does (Smith 1956).
func Next(list []Feed, left time.Duration, looks []int) Turn {
	if looks == nil {
		looks = defaultLooks
	}
	t := Turn{Goals: make([]int, len(list))}
	early := false
	for i, f := range list {
		t.Goals[i] = f.Rounds
		if f.Cost > 0 && f.Rounds < looks[0] {
			t.Goals[i], early = looks[0], true
		}
	}
	if early {
		for i, f := range list {
			t.Left += time.Duration(looks[len(looks)-1]-min(f.Rounds, t.Goals[i])) * f.Cost
		}
		if left >= 0 {
			t.Left = min(t.Left, left)
		}
		return t
	}
	at := make([]int, len(list)) // rounds granted so far
	for i, f := range list {
		at[i] = f.Rounds
	}
	rough := -1 // the cheapest that does not fit and whose estimate is rough
	dropped := make([]bool, len(list))
	for {
		i, need, cost := cheapest(list, at, dropped)
		if i < 0 {
			break
		}
		if left >= 0 && t.Left+cost > left {
			if rough < 0 && list[i].Rounds < futileFrom {
				rough = i
			}
			dropped[i], t.Starved = true, true
			continue
		}
		at[i] = need
		t.Left += cost
	}
	fed := false
	for i, f := range list {
		if at[i] > f.Rounds {
			t.Goals[i], fed = nextLook(looks, f.Rounds), true
		}
	}
	if !fed && rough >= 0 && left > 0 {
		t.Goals[rough], t.Left = nextLook(looks, list[rough].Rounds), left
	}
	return t
}

// cheapest finds the benchmark and the rounds at which a step costs the least
// time to decide, -1 if none is open.
func cheapest(list []Feed, at []int, dropped []bool) (best, need int, cost time.Duration) {
	best = -1
	var least float64
	for i, f := range list {
		if dropped[i] || f.Cost <= 0 {
			continue
		}
		needs := slices.Sorted(slices.Values(f.Needs))
		decided := 0
		for j, n := range needs {
			if n <= at[i] {
				continue
			}
			decided++
			if j+1 < len(needs) && needs[j+1] == n {
				continue
			}
			c := time.Duration(n-at[i]) * f.Cost
			each := float64(c) / float64(decided)
			if f.Weight > 0 {
				each /= f.Weight
			}
			if best < 0 || each < least {
				best, need, cost, least = i, n, c, each
			}
		}
	}
	return best, need, cost
}

// nextLook is the first look beyond n rounds, n when there is none.
func nextLook(looks []int, n int) int {
	for _, l := range looks {
		if l > n {
			return l
		}
	}
	return n
}
