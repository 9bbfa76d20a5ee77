package plan

import (
	"cmp"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// Figures are what the programs of a row did in one run.
type Figures struct {
	Wall, User, Sys  time.Duration
	RSS, Size, Tree  int64 // B, peaks; Tree is that of rss over all processes
	Peaks            bool  // the peaks are known
	Faults, Switches int64
	Read, Written    int64  // B
	Bytes            bool   // what was read and written is known
	Instructions     int64  // 0 if they were not counted
	Uncounted        string // why not, although they were to be; ""
	Involuntary      int64
	PressureNS       int64 // -1 for unknown
	// Slowdown is how many times as long as alone the programs took beside others;
	// 0 for a row that is not run alone.
	Slowdown float64
	// Less is what was subtracted; nil for nothing.
	Less *Figures
}

// Figures turns the results of the plan's takes, one list for each, into the
// figures of its rows. Of several copies the slowest makes the wall time, and
// everything else is the sum over them.
func (p Plan) Figures(results [][]sandbox.Result) []Figures {
	own, alone, less := make([]*Figures, len(p.Rows)), make([]*Figures, len(p.Rows)), make([]*Figures, len(p.Rows))
	for i, t := range p.Takes {
		for k, j := range t.Jobs {
			list := own
			switch j.Use {
			case Alone:
				list = alone
			case Subtracted:
				list = less
			case Unused:
				continue
			}
			list[j.Row] = list[j.Row].with(figuresOf(results[i][k]))
		}
	}
	rows := make([]Figures, len(p.Rows))
	for row := range rows {
		f := own[row]
		if a := alone[row]; a != nil && a.Wall > 0 {
			f.Slowdown = float64(f.Wall) / float64(a.Wall)
		}
		if less[row] != nil {
			f = f.minus(less[row])
		}
		rows[row] = *f
	}
	return rows
}

// with adds the figures of another copy; f may be nil.
func (f *Figures) with(o Figures) *Figures {
	if f == nil {
		return &o
	}
	f.Wall, f.User, f.Sys = max(f.Wall, o.Wall), f.User+o.User, f.Sys+o.Sys
	f.RSS, f.Size, f.Tree, f.Peaks = f.RSS+o.RSS, f.Size+o.Size, f.Tree+o.Tree, f.Peaks && o.Peaks
	f.Faults, f.Switches = f.Faults+o.Faults, f.Switches+o.Switches
	f.Read, f.Written, f.Bytes = f.Read+o.Read, f.Written+o.Written, f.Bytes && o.Bytes
	f.Instructions, f.Uncounted = f.Instructions+o.Instructions, cmp.Or(f.Uncounted, o.Uncounted)
	f.Involuntary += o.Involuntary
	f.PressureNS = max(f.PressureNS, o.PressureNS)
	return f
}

// minus subtracts the figures of a baseline.
func (f *Figures) minus(o *Figures) *Figures {
	d := *f
	d.Less = o
	d.Wall, d.User, d.Sys = f.Wall-o.Wall, f.User-o.User, f.Sys-o.Sys
	d.RSS, d.Size, d.Tree, d.Peaks = f.RSS-o.RSS, f.Size-o.Size, f.Tree-o.Tree, f.Peaks && o.Peaks
	d.Faults, d.Switches = f.Faults-o.Faults, f.Switches-o.Switches
	d.Read, d.Written, d.Bytes = f.Read-o.Read, f.Written-o.Written, f.Bytes && o.Bytes
	d.Instructions, d.Uncounted = f.Instructions-o.Instructions, cmp.Or(f.Uncounted, o.Uncounted)
	return &d
}

func figuresOf(r sandbox.Result) Figures {
	return Figures{
		Wall: r.Wall, User: r.User, Sys: r.Sys,
		// A peak of 0 could not be read: it never means that there was nothing.
		RSS: r.RSSBytes, Size: r.SizeBytes, Tree: r.RSSSumBytes, Peaks: r.RSSBytes > 0 && r.SizeBytes > 0,
		// Whether a page fault needs the disk hangs on the page cache; that it
		// happens does not.
		Faults:   r.Faults + r.MajorFaults,
		Switches: r.Voluntary + r.Involuntary,
		// Likewise what a program reads and writes, and not what of it a disk does.
		Read: r.ReadBytes, Written: r.WrittenBytes, Bytes: r.ReadBytes >= 0 && r.WrittenBytes >= 0,
		Instructions: r.Counted, Uncounted: r.Uncounted,
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
	list = append(list, f.Memory()...)
	list = append(list,
		Figure{bench.Faults.Name, bench.Count, float64(f.Faults), nil},
		Figure{"switches", bench.Count, float64(f.Switches), nil})
	if f.Bytes {
		list = append(list,
			Figure{"reads", bench.Byte, float64(f.Read), nil},
			Figure{"writes", bench.Byte, float64(f.Written), nil})
	}
	list = append(list, f.Counters()...)
	if f.Slowdown > 0 {
		list = append(list, Figure{bench.Slowdown.Name, bench.Slowdown.Unit, f.Slowdown, nil})
	}
	if f.Less != nil {
		for _, x := range f.Less.List() {
			if bench.MetricFor(x.Metric, x.Unit).Tested {
				list = append(list, Figure{bench.OfBaseline + x.Metric, x.Unit, x.Value, nil})
			}
		}
	}
	return list
}

// Memory gives the peaks of memory alone, nil if they are not known.
func (f Figures) Memory() []Figure {
	if !f.Peaks {
		return nil
	}
	return []Figure{
		{bench.RSS.Name, bench.Byte, float64(f.RSS), nil},
		{bench.Size.Name, bench.Byte, float64(f.Size), nil},
		{bench.Tree.Name, bench.Byte, float64(f.Tree), nil},
	}
}

// Counters gives what the processor counted, nil if it did not.
func (f Figures) Counters() []Figure {
	if f.Instructions == 0 || f.Uncounted != "" {
		return nil
	}
	return []Figure{{"instructions", bench.Count, float64(f.Instructions), nil}}
}

// TakePeaks takes the peaks of memory, the bytes read and written, which the
// same trace tells, and the instructions from another run of the same programs.
func (f *Figures) TakePeaks(o Figures) {
	f.RSS, f.Size, f.Tree, f.Peaks = o.RSS, o.Size, o.Tree, o.Peaks
	f.Read, f.Written, f.Bytes = o.Read, o.Written, o.Bytes
	f.Instructions, f.Uncounted = o.Instructions, o.Uncounted
	if f.Less != nil && o.Less != nil {
		f.Less.TakePeaks(*o.Less)
	}
}
