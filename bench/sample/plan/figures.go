package plan

import (
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// Figures are what the programs of a row did in one run.
type Figures struct {
	Wall, User, Sys                 time.Duration
	RSS, Size                       int64 // B, peaks; 0 for unknown
	Faults, Switches, Reads, Writes int64
	Involuntary                     int64
	PressureNS                      int64 // -1 for unknown
}

// Figures turns the results of the plan's takes, one list for each, into the
// figures of its rows.
func (p Plan) Figures(results [][]sandbox.Result) []Figures {
	rows := make([]Figures, len(p.Rows))
	for i, t := range p.Takes {
		for k, j := range t.Jobs {
			rows[j.Row] = figuresOf(results[i][k])
		}
	}
	return rows
}

func figuresOf(r sandbox.Result) Figures {
	return Figures{
		Wall: r.Wall, User: r.User, Sys: r.Sys, RSS: r.RSSBytes, Size: r.SizeBytes,
		// Whether a page fault needs the disk hangs on the page cache; that it
		// happens does not.
		Faults:   r.Faults + r.MajorFaults,
		Switches: r.Voluntary + r.Involuntary, Reads: r.ReadBlocks, Writes: r.WriteBlocks,
		Involuntary: r.Involuntary, PressureNS: r.PressureNS,
	}
}

// Figure is one figure of a row, in base units.
type Figure struct {
	Metric, Unit string
	Value        float64
	Covariates   map[string]float64 // nil for none
}

// Covariates are readings of the machine, as in bench.Sample.
func (f Figures) Covariates() map[string]float64 {
	c := map[string]float64{"nivcsw": float64(f.Involuntary)}
	if f.PressureNS >= 0 {
		c["psi_ns"] = float64(f.PressureNS)
	}
	return c
}

// List gives all figures of a row, in the order of the record.
func (f Figures) List() []Figure {
	around := f.Covariates()
	list := []Figure{
		{bench.Wall.Name, bench.Second, f.Wall.Seconds(), around},
		{bench.CPU.Name, bench.Second, (f.User + f.Sys).Seconds(), around},
		{bench.User.Name, bench.Second, f.User.Seconds(), nil},
		{bench.Sys.Name, bench.Second, f.Sys.Seconds(), nil},
	}
	list = append(list, f.Peaks()...)
	return append(list,
		Figure{bench.Faults.Name, bench.Count, float64(f.Faults), nil},
		Figure{"switches", bench.Count, float64(f.Switches), nil},
		Figure{"reads", bench.Count, float64(f.Reads), nil},
		Figure{"writes", bench.Count, float64(f.Writes), nil})
}

// Peaks gives the peaks of memory alone. One of 0 could not be read: it never
// means that there was nothing.
func (f Figures) Peaks() []Figure {
	var list []Figure
	if f.RSS > 0 {
		list = append(list, Figure{bench.RSS.Name, bench.Byte, float64(f.RSS), nil})
	}
	if f.Size > 0 {
		list = append(list, Figure{bench.Size.Name, bench.Byte, float64(f.Size), nil})
	}
	return list
}
