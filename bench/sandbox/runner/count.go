package runner

import (
	"time"

	"patchbench/bench/sandbox/perf"
)

// startCounting begins to count the event that a job asks for. Its program is
// stopped at its first instruction and does not feel the time that this takes.
func (j *job) startCounting() {
	begin := time.Now()
	opened := make(chan error)
	// The thread that starts programs is refused the call as these are.
	go func() {
		var err error
		j.counter, err = perf.Open(j.pid, *j.Count)
		opened <- err
	}()
	if err := <-opened; err != nil {
		j.counter, j.res.Uncounted = nil, err.Error()
	}
	j.begin = j.begin.Add(time.Since(begin))
}

// stopCounting reads a job's counter when nothing of the job is left.
func (j *job) stopCounting() {
	switch {
	case j.Count == nil:
	case j.counter != nil:
		var err error
		if j.res.Counted, err = j.counter.Read(); err != nil {
			j.res.Uncounted = err.Error()
		}
	case j.res.Uncounted == "":
		j.res.Uncounted = "it ended before its first instruction"
	}
	j.closeCounter()
}

func (j *job) closeCounter() {
	if j.counter != nil {
		// Nothing was written that could be lost.
		_ = j.counter.Close()
		j.counter = nil
	}
}
