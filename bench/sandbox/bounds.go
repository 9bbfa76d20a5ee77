package sandbox

import "time"

// enterBounds notes how things stand before a run.
func (r *Runner) enterBounds() error {
	r.short = nil
	if err := r.enterRooms(); err != nil {
		return err
	}
	if r.group != nil {
		return r.group.Begin()
	}
	return nil
}

// blamed gives the result of the job that a bound of the box ended: the first that
// failed by itself, else the last.
func blamed(results []Result) *Result {
	for i := range results {
		if !results[i].OK() && results[i].NotStarted == "" {
			return &results[i]
		}
	}
	return &results[len(results)-1]
}

// nameLimit says in a result that a bound of the box ended the program, if one
// did: its group's, of which the kernel tells the program no reason, or the room
// that is left on the host.
func (r *Runner) nameLimit(res *Result, began time.Time) error {
	if m := r.short; m != nil {
		return m.nameRoom(res, began)
	}
	if !res.OK() && res.Limit == "" {
		if m := r.scarce(); m != nil {
			return m.nameRoom(res, began)
		}
	}
	if r.group == nil {
		return nil
	}
	hit, err := r.group.End()
	if err != nil {
		return err
	}
	switch {
	case hit.Memory > 0:
		// Also when the program went on without the process that was killed.
		res.Limit = r.memory
	case hit.Processes > 0 && res.Limit != "":
		res.Limit = r.processes + ", then " + res.Limit
	case hit.Processes > 0 && !res.OK() && res.NotStarted == "":
		res.Limit = r.processes
	default:
		return nil
	}
	res.Status, res.Signal = -1, ""
	return nil
}
