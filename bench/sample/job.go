package sample

import (
	"context"
	"fmt"

	"patchbench/bench/sandbox"
)

// job is a program among others on one state of a box.
type job struct {
	sandbox.Command
	Background bool
	Ready      []string
	Together   bool
}

// single is a runner for takes of one program.
type single struct{ *sandbox.Runner }

func (r single) DoAll(ctx context.Context, jobs []job) ([]sandbox.Result, error) {
	if len(jobs) != 1 || jobs[0].Background || jobs[0].Together {
		return nil, fmt.Errorf("run %d programs on one state: this box starts one", len(jobs))
	}
	res, err := r.Do(ctx, jobs[0].Command)
	return []sandbox.Result{res}, err
}
