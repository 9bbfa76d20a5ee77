package bench

import "strings"

// MetricFor gives the metric that a sample's name and unit stand for; "" is the
// unit that a known name has by itself. Names that
// every process-level benchmark or exact counter yields are known; of others
// the unit tells: rates ("MB/s", "op/s") are better when higher, everything
// else when lower, as benchstat reads Go benchmark units.
func MetricFor(name, unit string) Metric {
	for _, m := range known {
		// A tool may count "reads" in a second under the same name.
		if m.Name != name || strings.HasSuffix(unit, "/s") {
			continue
		}
		if unit != "" {
			m.Unit = unit
		}
		return m
	}
	if of, ok := strings.CutPrefix(name, OfBaseline); ok {
		m := MetricFor(of, unit)
		m.Name, m.Tested = name, false
		return m
	}
	m := Metric{Name: name, Unit: unit, Better: Lower, Tested: true}
	if strings.HasSuffix(unit, "/s") {
		m.Better = Higher
	}
	return m
}

var known = []Metric{
	Wall, CPU, User, Sys, RSS, Size, Tree, Faults,
	Slowdown,
	{Name: "switches", Unit: Count, Better: Lower},
	{Name: "reads", Unit: Byte, Better: Lower},
	{Name: "writes", Unit: Byte, Better: Lower},
	{Name: "heap", Unit: Byte, Better: Lower, Exact: true, Tested: true},
	{Name: "malloc", Unit: Byte, Better: Lower, Exact: true, Tested: true},
	{Name: "allocs", Unit: Count, Better: Lower, Exact: true, Tested: true},
	{Name: "copied", Unit: Byte, Better: Lower, Exact: true, Tested: true},
	{Name: "instructions", Unit: Count, Better: Lower, Exact: true, Tested: true},
}
