package main

import (
	"fmt"
	"strconv"
	"time"
)

// measureFlags say how to measure.
type measureFlags struct {
	Rounds     rounds  `placeholder:"N" help:"Exactly N rounds. Default: until every row is decided, 80 at most."`
	Budget     budget  `placeholder:"10m" help:"Time for measuring, builds not counted. Default: 10m, or none with --rounds."`
	Benchmarks string  `placeholder:"REGEX" help:"Only the benchmarks whose name, with its parameters as in grep{n=100}, matches."`
	Seed       *uint64 `placeholder:"N" help:"Seed of the order of runs and of the tests. Default: a new one."`
	Margin     float64 `default:"1" placeholder:"PERCENT" help:"Changes below this many percent count as the same. Default: 1."`
	placeFlags
}

// placeFlags say where programs run.
type placeFlags struct {
	WorkDir    string `placeholder:"DIR" help:"Where checkouts and builds go while it runs. Default: a new folder below /var/tmp."`
	SandboxUID int    `name:"sandbox-uid" placeholder:"UID" help:"Under which user id programs run when the bot is root. Default: 64000."`
	Unsafe     bool   `name:"unsafe-no-sandbox" help:"Run the code of the series without a sandbox, as yourself. Only for code that you trust."`
}

// check refuses values that cannot be meant.
func (f *measureFlags) check() error {
	switch {
	case f.SandboxUID < 0:
		return usage(fmt.Errorf("--sandbox-uid %d: must be a user id above 0", f.SandboxUID))
	}
	return checkMargin(f.Margin)
}

// rounds is a number of rounds as somebody gives it; 0 is none given.
type rounds int

// UnmarshalText reads a number from 1 to 10000.
func (r *rounds) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > 10000 {
		return fmt.Errorf("%q: must be a number from 1 to 10000", text)
	}
	*r = rounds(n)
	return nil
}

// budget is a length of time as somebody gives it; 0 is none given.
type budget time.Duration

// UnmarshalText reads a duration above 0.
func (b *budget) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: must be a time above 0, as 90s or 10m", text)
	}
	*b = budget(d)
	return nil
}

// checkMargin refuses what is no margin in percent, NaN too.
func checkMargin(percent float64) error {
	if percent >= 0.01 && percent <= 50 {
		return nil
	}
	return usage(fmt.Errorf("--margin %v: must be 0.01 to 50 percent", percent))
}
