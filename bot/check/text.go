package check

import (
	"fmt"
	"io"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
)

// width is how many columns the text takes at most.
const width = 72

// logLines are shown of each log.
const logLines = 12

// Text writes the report for people, in at most 72 columns.
func (r *Report) Text(w io.Writer) error {
	lines := r.head()
	lines = append(lines, r.faults()...)
	lines = append(lines, r.rows()...)
	lines = append(lines, r.cost()...)
	if len(r.Notes) > 0 {
		lines = append(lines, "", "Worth knowing")
		for _, n := range r.Notes {
			for _, l := range plain.Wrap("- "+plain.Clean(n), width-2, "  ") {
				lines = append(lines, "  "+l)
			}
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// head says whether the suite works, and what it was tried on.
func (r *Report) head() []string {
	name := plain.Clean(r.Suite.Name)
	what := fmt.Sprintf("Suite %s works on base %.12s.", name, r.Base.Commit)
	if n := len(r.Wrong); n == 1 {
		what = fmt.Sprintf("Suite %s does not work on base %.12s: 1 fault.", name, r.Base.Commit)
	} else if n > 1 {
		what = fmt.Sprintf("Suite %s does not work on base %.12s: %d faults.", name, r.Base.Commit, n)
	}
	lines := plain.Wrap(what, width, "  ")
	lines = append(lines, "")
	fact := func(key, text string) {
		for _, l := range plain.Wrap(text, width-8, "") {
			lines = append(lines, plain.Pad(key, 8)+l)
			key = ""
		}
	}
	fact("File", plain.Clean(r.Suite.File))
	fact("Base", fmt.Sprintf("%.12s (%s: %s)", r.Base.Commit, r.Base.How, plain.Clean(r.Base.Reason)))
	var works int
	for _, b := range r.Benchmarks {
		if b.Works {
			works++
		}
	}
	if r.Build.State == bench.Built {
		fact("Build", r.buildText())
		fact("Runs", fmt.Sprintf("%d of %d benchmarks work", works, len(r.Benchmarks)))
	}
	return lines
}

func (r *Report) buildText() string {
	text := figure.Elapsed(r.Build.Seconds)
	if again := r.Build.AgainSeconds; again != nil {
		text += ", again " + figure.Elapsed(*again)
	}
	if same := r.Build.Same; same != nil && *same {
		text += " with the same result"
	} else if same != nil {
		text += " with other files"
	}
	return text + "; a version takes " + value(float64(r.Build.VersionBytes), bench.Byte)
}

// faults are what must be mended, with the end of what was printed.
func (r *Report) faults() []string {
	if len(r.Wrong) == 0 {
		return nil
	}
	lines := []string{"", "Wrong"}
	for _, f := range r.Wrong {
		for _, l := range plain.Wrap(plain.Clean(f.Where+": "+f.What), width-2, "  ") {
			lines = append(lines, "  "+l)
		}
		for _, l := range plain.Tail(f.LogTail, logLines, width-6) {
			lines = append(lines, "    | "+l)
		}
	}
	return lines
}

// rows is the table of noise, of the rows that are tested.
func (r *Report) rows() []string {
	t := plain.Table{Columns: []plain.Column{{}, {Head: "median", Gap: 2, Align: plain.Point}, {Gap: 1}, {Head: "spread", Gap: 2, Align: plain.Point}}}
	for _, n := range atRounds {
		t.Columns = append(t.Columns, plain.Column{Head: fmt.Sprint(n), Gap: 2, Align: plain.Point})
	}
	last, shown, untold := "", 0, false
	for _, row := range r.Rows {
		if !row.Tested || row.Median == nil {
			continue
		}
		shown++
		if name := bench.RowName(row.Benchmark, row.Params); name != last {
			t.Add(plain.Cut(plain.Clean(name), width-4))
			last = name
		}
		number, unit, _ := strings.Cut(value(*row.Median, row.Unit), " ")
		cells := []string{"  " + plain.Cut(plain.Clean(row.Metric), 18), number, plain.Cut(unit, 7), "-"}
		switch {
		case row.Exact:
			cells[3] = "exact"
		case row.Spread != nil:
			cells[3] = figure.Share(*row.Spread)
		default:
			untold = true
		}
		for _, d := range row.Detectable {
			cell := ""
			switch {
			case d.Change != nil:
				cell = figure.Share(*d.Change)
			case !row.Exact:
				cell = "-"
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	if shown == 0 {
		return nil
	}
	lines := append([]string{""}, plain.Wrap(fmt.Sprintf(
		"How noisy each row is (rough, from %s of two equal builds), and the smallest change that 10, 20 and 40 rounds would show at one of %d patches",
		rounds(r.most()), seriesOf), width, "")...)
	table, _ := t.Render()
	for _, l := range table {
		lines = append(lines, strings.TrimRight("  "+l, " "))
	}
	if untold {
		lines = append(lines, "  - cannot be told from fewer than 3 rounds")
	}
	return lines
}

// most is the largest number of rounds of a row.
func (r *Report) most() int {
	n := 0
	for _, row := range r.Rows {
		n = max(n, row.Rounds)
	}
	return n
}

// cost is the table of what evaluations take.
func (r *Report) cost() []string {
	if len(r.Cost) == 0 {
		return nil
	}
	t := plain.Table{Columns: []plain.Column{
		{Head: "patches", Align: plain.Right}, {Head: "builds", Gap: 3, Align: plain.Right}, {Head: "a round", Gap: 3, Align: plain.Right},
		{Head: "10 rounds", Gap: 3, Align: plain.Right}, {Head: "80 rounds", Gap: 3, Align: plain.Right}, {Head: "disk", Gap: 3, Align: plain.Right},
	}}
	for _, k := range r.Cost {
		t.Add(fmt.Sprint(k.Patches), figure.Elapsed(k.BuildsSeconds), figure.Elapsed(k.RoundSeconds), figure.Elapsed(k.FirstSeconds),
			figure.Elapsed(k.LastSeconds), value(float64(k.DiskBytes), bench.Byte))
	}
	table, _ := t.Render()
	lines := []string{"", "What an evaluation takes: the builds, and 10 to 80 rounds until all", "is decided"}
	for _, l := range table {
		lines = append(lines, "  "+l)
	}
	return lines
}
