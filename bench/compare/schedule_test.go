package compare

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func TestNext(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		list  []Feed
		left  time.Duration
		looks []int
		want  Turn
	}{
		"nothing": {nil, s, nil, Turn{Goals: []int{}}},
		"all get the first look": {
			[]Feed{{0, s, nil, 0}, {4, s, nil, 0}, {0, 0, nil, 0}, {15, s, []int{80}, 0}}, 30 * s, nil,
			Turn{Goals: []int{10, 10, 0, 15}, Left: 30 * s},
		},
		"a fixed number of rounds": {
			[]Feed{{0, s, nil, 0}, {0, s, nil, 0}}, -1, []int{30},
			Turn{Goals: []int{30, 30}, Left: 60 * s},
		},
		"decided ones rest": {
			[]Feed{{10, s, nil, 0}, {10, s, []int{12}, 0}}, 60 * s, nil,
			Turn{Goals: []int{10, 15}, Left: 2 * s},
		},
		"all that fits is fed to its next look": {
			[]Feed{{10, s, []int{40}, 0}, {20, s, []int{21, 25}, 0}}, 60 * s, nil,
			Turn{Goals: []int{15, 30}, Left: 35 * s},
		},
		"the cheap one before the dear one": {
			[]Feed{{20, s, []int{80}, 0}, {20, s, []int{30}, 0}}, 30 * s, nil,
			Turn{Goals: []int{20, 30}, Left: 10 * s, Starved: true},
		},
		"a slow benchmark is dear at few rounds": {
			[]Feed{{20, 10 * s, []int{25}, 0}, {20, s, []int{60}, 0}}, 45 * s, nil,
			Turn{Goals: []int{20, 30}, Left: 40 * s, Starved: true},
		},
		"many steps at once are worth more": {
			[]Feed{{20, s, []int{60, 60, 60, 60}, 0}, {20, s, []int{50}, 0}}, 45 * s, nil,
			Turn{Goals: []int{30, 20}, Left: 40 * s, Starved: true},
		},
		"the near step of a benchmark, not the far one": {
			[]Feed{{20, s, []int{25, 80}, 0}, {20, s, []int{50}, 0}}, 40 * s, nil,
			Turn{Goals: []int{30, 30}, Left: 35 * s, Starved: true},
		},
		"weight": {
			[]Feed{{20, s, []int{80}, 3}, {20, s, []int{45}, 0}}, 60 * s, nil,
			Turn{Goals: []int{30, 20}, Left: 60 * s, Starved: true},
		},
		"without weight": {
			[]Feed{{20, s, []int{80}, 1}, {20, s, []int{45}, 0}}, 60 * s, nil,
			Turn{Goals: []int{20, 30}, Left: 25 * s, Starved: true},
		},
		"hopeless within the budget": {
			[]Feed{{20, s, []int{80}, 0}, {30, s, []int{70}, 0}}, 20 * s, nil,
			Turn{Goals: []int{20, 30}, Starved: true},
		},
		"a rough estimate is not trusted": {
			[]Feed{{10, s, []int{80}, 0}, {15, s, []int{70}, 0}}, 20 * s, nil,
			Turn{Goals: []int{10, 20}, Left: 20 * s, Starved: true},
		},
		"no time":           {[]Feed{{10, s, []int{15}, 0}}, 0, nil, Turn{Goals: []int{10}, Starved: true}},
		"without a bound":   {[]Feed{{40, s, []int{80}, 0}, {60, 0, []int{80}, 0}}, -1, nil, Turn{Goals: []int{60, 60}, Left: 40 * s}},
		"beyond all looks":  {[]Feed{{80, s, []int{81}, 0}}, -1, nil, Turn{Goals: []int{80}, Left: s}},
		"asks for the past": {[]Feed{{20, s, []int{20}, 0}}, -1, nil, Turn{Goals: []int{20}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Next(tt.list, tt.left, tt.looks)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// FuzzNext: whatever is asked for, nothing is fed that cannot be run, none is
// led past its next look or back, and the plan fits into the time.
func FuzzNext(f *testing.F) {
	f.Add(uint64(1), int64(100))
	f.Add(uint64(7), int64(-1))
	f.Add(uint64(9), int64(0))
	f.Fuzz(func(t *testing.T, seed uint64, left int64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		list := make([]Feed, rng.IntN(6))
		for i := range list {
			list[i] = Feed{Rounds: rng.IntN(90), Cost: time.Duration(rng.IntN(4))}
			for range rng.IntN(5) {
				list[i].Needs = append(list[i].Needs, rng.IntN(100)-5)
			}
		}
		left %= 1000
		turn := Next(list, time.Duration(left), nil)
		for i, x := range list {
			g := turn.Goals[i]
			if g < x.Rounds || g > nextLook(defaultLooks, x.Rounds) || g > x.Rounds && x.Cost == 0 {
				t.Errorf("%+v is to have %d rounds", x, g)
			}
		}
		if left >= 0 && turn.Left > time.Duration(left) {
			t.Errorf("takes %d of %d", turn.Left, left)
		}
	})
}

// simulated runs benchmarks whose samples are given within a budget, as bot/eval
// does.
type simulated struct {
	names   []string
	samples map[string][]bench.Sample
	cost    map[string]time.Duration
}

func (s simulated) judge(rounds map[string]int, final bool) Result {
	var have []bench.Sample
	for _, name := range s.names {
		for _, x := range s.samples[name] {
			if x.Round <= rounds[name] {
				have = append(have, x)
			}
		}
	}
	return Compare(builtVersions(6), have, nil, Options{Seed: 1, Final: final})
}

// inTurn gives each open benchmark a round in turn until the budget is spent.
func (s simulated) inTurn(budget time.Duration) map[string]int {
	rounds, open := map[string]int{}, s.names
	for n := 1; n <= 80 && len(open) > 0; n++ {
		for _, name := range open {
			if budget < s.cost[name] {
				return rounds
			}
			budget -= s.cost[name]
			rounds[name]++
		}
		if nextLook(defaultLooks, n-1) == n {
			open = nil
			for _, o := range s.judge(rounds, false).Open {
				open = append(open, o.Benchmark)
			}
		}
	}
	return rounds
}

// scheduled follows Next.
func (s simulated) scheduled(t *testing.T, budget time.Duration) map[string]int {
	rounds := map[string]int{}
	var open []Open
	for range 100 {
		list := make([]Feed, len(s.names))
		for i, name := range s.names {
			list[i] = Feed{Rounds: rounds[name], Cost: s.cost[name]}
			for _, o := range open {
				if o.Benchmark == name {
					list[i].Needs = o.Needs
				}
			}
		}
		turn := Next(list, budget, nil)
		if turn.Ended(list) {
			return rounds
		}
		for fed := true; fed; {
			fed = false
			for i, name := range s.names {
				if rounds[name] >= turn.Goals[i] {
					continue
				}
				if budget < s.cost[name] {
					return rounds
				}
				budget -= s.cost[name]
				rounds[name]++
				fed = true
			}
		}
		open = s.judge(rounds, false).Open
	}
	t.Fatal("the schedule does not end")
	return nil
}

// decided counts the steps with a verdict, but those of wall time.
func (s simulated) decided(rounds map[string]int) (n int) {
	for _, c := range s.judge(rounds, true).Comparisons {
		if c.Metric == bench.Wall.Name {
			continue
		}
		for _, st := range c.Steps {
			if st.Verdict != bench.Unclear {
				n++
			}
		}
	}
	return n
}

// TestScheduleDecidesMore: two quick benchmarks that 20 to 30 rounds decide, two
// dear ones that need far more than there is time for.
func TestScheduleDecidesMore(t *testing.T) {
	simulation(t)
	var before, after, spent, budgets time.Duration
	for seed := range uint64(5) {
		s := simulated{names: []string{"dear", "quick", "noisy", "small"}, samples: map[string][]bench.Sample{},
			cost: map[string]time.Duration{"dear": 10 * time.Second, "noisy": 8 * time.Second, "quick": time.Second, "small": time.Second}}
		sd := map[string]float64{"dear": .08, "noisy": .07, "quick": .014, "small": .014}
		for i, name := range s.names {
			level := []float64{1, 1, 1, 1, 1, 1}
			if name == "small" {
				level = []float64{1, 1, 1, 1.02, 1.02, 1.02}
			}
			s.samples[name] = append(s.samples[name], made(bench.CPU, name, level, 80, sd[name], 10*seed+uint64(i))...)
			s.samples[name] = append(s.samples[name], made(bench.Wall, name, level, 80, 3*sd[name], 10*seed+uint64(i)+5)...)
		}
		const budget = 280 * time.Second
		a, b := s.inTurn(budget), s.scheduled(t, budget)
		na, nb := s.decided(a), s.decided(b)
		t.Logf("in turn: %v decides %d steps; scheduled: %v decides %d", a, na, b, nb)
		before += time.Duration(na)
		after += time.Duration(nb)
		for name, n := range b {
			spent += time.Duration(n) * s.cost[name]
		}
		budgets += budget
		if b["quick"] < b["dear"] || b["small"] < b["dear"] {
			t.Errorf("seed %d: the dear benchmark got more rounds than the quick ones: %v", seed, b)
		}
	}
	t.Logf("%d steps decided in turn, %d scheduled in %v of %v", before, after, spent, budgets)
	if after <= before {
		t.Errorf("scheduled rounds decide %d steps, rounds in turn %d", after, before)
	}
	if spent > budgets {
		t.Errorf("%v spent of %v", spent, budgets)
	}
}

// TestWallDoesNotHold: wall time whose cpu time is settled asks for rounds only
// when it may well have changed; that happens by chance in few rows.
func TestWallDoesNotHold(t *testing.T) {
	simulation(t)
	flat := []float64{1, 1, 1, 1}
	// open counts the benchmarks that ask for rounds, or found the change.
	open := func(wall []float64, cpu float64) (n int) {
		for seed := range uint64(40) {
			s := append(made(bench.CPU, "b", flat, 20, cpu, seed), made(bench.Wall, "b", wall, 20, .03, seed+100)...)
			r := Compare(builtVersions(4), s, nil, Options{Seed: 1})
			if len(r.Open) > 0 || flagged(r.Comparisons[1].Steps[1]) {
				n++
			}
		}
		return n
	}
	if n := open(flat, .004); n > 6 {
		t.Errorf("noise of wall time holds %d of 40 benchmarks open whose cpu time is settled", n)
	}
	if n := open([]float64{1, 1, 1.03, 1.03}, .004); n < 25 {
		t.Errorf("a likely change of wall time is found or holds %d of 40 benchmarks open", n)
	}
	if n := open(flat, .03); n < 30 {
		t.Errorf("cpu time that is open holds %d of 40 benchmarks open", n)
	}
}

// TestWholeAlphaForTwo: with two versions the step is the whole series.
func TestWholeAlphaForTwo(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(200) {
		c := Compare(builtVersions(2), made(bench.CPU, "b", []float64{1, 1.02}, 12, .02, seed), nil, fixed(12)).Comparisons[0]
		if c.Steps[0].Verdict != c.Total.Verdict {
			t.Errorf("seed %d: step %s, total %s", seed, c.Steps[0].Verdict, c.Total.Verdict)
		}
		found[string(c.Steps[0].Verdict)]++
	}
	null := 0
	for seed := range uint64(1000) {
		c := Compare(builtVersions(2), made(bench.CPU, "b", []float64{1, 1}, 12, .02, seed), nil, fixed(12)).Comparisons[0]
		if flagged(c.Steps[0]) || flagged(c.Total) {
			null++
		}
	}
	t.Logf("+2 %%: %v of 200; no change: %d flags in 1000", found, null)
	if null > 50+20 || null < 20 {
		t.Errorf("%d false flags in 1000 pairs, about 50 are due", null)
	}
}

// TestConstantRowsTakeNoAlpha: rows in which nothing differs leave their share to
// the others when the number of rounds is fixed.
func TestConstantRowsTakeNoAlpha(t *testing.T) {
	allocs := bench.Metric{Name: "allocs/op", Unit: "1"}
	found := func(constant float64, o Options) (n int) {
		for seed := range uint64(100) {
			s := made(bench.CPU, "b", []float64{1, 1.02}, 12, .015, seed)
			for i := range 20 {
				s = append(s, made(allocs, "b"+string(rune('a'+i)), []float64{3, 3}, 12, constant, seed)...)
			}
			if flagged(Compare(builtVersions(2), s, nil, o).Comparisons[0].Steps[0]) {
				n++
			}
		}
		return n
	}
	with, without := found(0, fixed(12)), found(.01, fixed(12))
	t.Logf("found %d of 100 beside constant rows, %d beside noisy ones", with, without)
	if with < without+20 {
		t.Errorf("+2 %% is found in %d of 100 beside constant rows, in %d beside noisy ones", with, without)
	}
	if looks := found(0, Options{Final: true}); looks > with {
		t.Errorf("with looks ahead constant rows gave their share away: %d found", looks)
	}
}
