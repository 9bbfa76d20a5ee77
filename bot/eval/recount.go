package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/bot/eval/taken"
	"patchbench/bot/eval/variant"
)

// recountings is in how many rounds in all a counter is counted that does not repeat:
// as many as it takes for its first verdict.
func recountings() int { return compare.Looks()[0] }

// unsteady is a benchmark some of whose counters differ between runs of one build.
type unsteady struct {
	b        int
	metrics  []string
	versions []sample.Version
	cost     time.Duration // of a round; 0 if it is not known
}

// recount counts again what does not repeat on base: these counters are judged like
// any noisy figure, for which once is not enough. One benchmark after the other gets
// a round until each has had enough, or the time is spent, which is as much as the
// budget of rounds once more.
func (r *run) recount(ctx context.Context, boxes *variant.Boxes, chosen []bool) error {
	goal := min(recountings(), r.looks()[0])
	list, total := r.unsteady(boxes, chosen, goal)
	if len(list) == 0 {
		return nil
	}
	r.Progress.Stage("count again", total)
	start := r.Now()
	for done := 0; len(list) > 0; done++ {
		u := list[0]
		list = list[1:]
		bm := r.suite.Benchmarks[u.b]
		rounds, last := taken.Countings(r.samples, bm, u.metrics, u.versions)
		what := fmt.Sprintf("%s: %s", bm.Key(), strings.Join(u.metrics, ", "))
		if r.Budget > 0 && r.recounted+u.cost > r.Budget {
			r.warn(fmt.Sprintf("%s: not the same in two runs of base; counted in %d of %d rounds, for which the budget of %v is too little",
				what, rounds, goal, r.Budget))
			continue
		}
		r.Progress.Done(done, fmt.Sprintf("round %d of %d, %s%s", rounds+1, goal, what, within(r.Budget)), leftOf(start, r.Now(), done, total))
		began := r.Now()
		sampler, _ := boxes.Of(bm)
		e, err := sampler.Recount(ctx, u.b, last+1, u.metrics)
		if err != nil {
			return fmt.Errorf("count %s: %w", bm.Key(), err)
		}
		if err := r.took(ctx, e.Samples, nil, e.Warnings); err != nil {
			return err
		}
		u.cost = r.Now().Sub(began)
		r.recounted += u.cost
		r.counted(u.b, u.cost)
		// What does not come any more is not waited for.
		if now, _ := taken.Countings(r.samples, bm, u.metrics, u.versions); now > rounds && now < goal {
			list = append(list, u)
		}
	}
	r.Progress.Done(total, "", 0)
	if !r.deadline.IsZero() {
		r.deadline = r.deadline.Add(r.Now().Sub(start))
	}
	return nil
}

// unsteady finds the chosen benchmarks with counters that do not repeat and that were
// not counted in as many rounds as they are to be; total is how many these lack.
func (r *run) unsteady(boxes *variant.Boxes, chosen []bool, goal int) (list []unsteady, total int) {
	for b, bm := range r.suite.Benchmarks {
		sampler, versions := boxes.Of(bm)
		if !chosen[b] || sampler == nil {
			continue
		}
		metrics := slices.DeleteFunc(sampler.Counters(b), func(m string) bool { return taken.Repeats(r.samples, bm, m) })
		if rounds, _ := taken.Countings(r.samples, bm, metrics, versions); len(metrics) > 0 && rounds < goal {
			list = append(list, unsteady{b: b, metrics: metrics, versions: versions, cost: r.counting[b]})
			total += goal - rounds
		}
	}
	return list, total
}

// within words the time for all further counting, "" for as much as it takes.
func within(budget time.Duration) string {
	if budget == 0 {
		return ""
	}
	return fmt.Sprintf(", within %v", budget)
}
