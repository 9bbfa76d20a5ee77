package bench

import "time"

// Bound cuts what the suite allows its programs to what most gives, and tells by name
// which limits were cut; zero there means no bound. What the suite leaves to the
// defaults stays with them. It keeps a suite that somebody else wrote into a tree
// from taking the whole machine.
func (s *Suite) Bound(most Limits) (cut []string) {
	limit := func(what string, v *int64, most int64) {
		if most > 0 && *v > most {
			*v = most
			cut = append(cut, what)
		}
	}
	limit("memory", &s.Limits.MemoryBytes, most.MemoryBytes)
	limit("disk", &s.Limits.DiskBytes, most.DiskBytes)
	limit("output", &s.Limits.OutputBytes, most.OutputBytes)
	if most.Processes > 0 && s.Limits.Processes > most.Processes {
		s.Limits.Processes = most.Processes
		cut = append(cut, "processes")
	}
	if most.Timeout == 0 {
		return cut
	}
	late := false
	until := func(t *time.Duration) {
		if *t > most.Timeout {
			*t, late = most.Timeout, true
		}
	}
	until(&s.Limits.Timeout)
	until(&s.Build.Timeout)
	for i := range s.Variants {
		until(&s.Variants[i].Timeout)
	}
	var each func(list []Benchmark)
	each = func(list []Benchmark) {
		for i := range list {
			until(&list[i].Timeout)
			each(list[i].Together)
			if b := list[i].Baseline; b != nil {
				until(&b.Timeout)
			}
		}
	}
	each(s.Benchmarks)
	if late {
		cut = append(cut, "timeout")
	}
	return cut
}
