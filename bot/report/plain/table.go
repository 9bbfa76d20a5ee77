package plain

import "strings"

// Alignment is how a column's cells stand under each other.
type Alignment int

// Alignments of a column.
const (
	Left Alignment = iota
	Right
	Point // on the decimal point, or on the end of the number's whole part
)

// A Column of a table. Columns without any text vanish together with their gap.
type Column struct {
	Head  string // stands above this column and those behind it without one
	Gap   int    // blanks before it
	Align Alignment
}

// A Table is lines of cells; a line of one cell is a heading and takes no part
// in the alignment.
type Table struct {
	Columns []Column
	lines   [][]string
}

// Add adds a line of cells, or with one cell a heading.
func (t *Table) Add(cells ...string) { t.lines = append(t.lines, cells) }

// split gives a cell's part before the decimal point and the rest.
func split(cell string) (whole, rest string) {
	digits := false
	for i, r := range cell {
		switch {
		case r >= '0' && r <= '9':
			digits = true
		case digits:
			return cell[:i], cell[i:]
		}
	}
	return cell, ""
}

// Render gives the lines of the table, with a line of heads if there are any,
// and the columns of the longest line that is no heading.
func (t *Table) Render() (lines []string, width int) {
	n := len(t.Columns)
	wide, behind := make([]int, n), make([]int, n) // behind: of which after the point
	ahead := make([]int, n)
	for _, cells := range t.lines {
		if len(cells) != n {
			continue
		}
		for i, cell := range cells {
			if t.Columns[i].Align == Point {
				whole, rest := split(cell)
				ahead[i] = max(ahead[i], Columns(whole))
				behind[i] = max(behind[i], Columns(rest))
				wide[i] = ahead[i] + behind[i]
			} else {
				wide[i] = max(wide[i], Columns(cell))
			}
		}
	}
	// A head may be wider than what stands below it.
	for i := 0; i < n; {
		last, sum := i, wide[i]
		for last+1 < n && t.Columns[last+1].Head == "" {
			last++
			if wide[last] > 0 {
				sum += wide[last] + t.Columns[last].Gap
			}
		}
		if lack := Columns(t.Columns[i].Head) - sum; lack > 0 && sum > 0 {
			wide[i] += lack
			ahead[i] += lack
		}
		i = last + 1
	}
	var heads strings.Builder
	at := 0
	for i, c := range t.Columns {
		if wide[i] == 0 {
			continue
		}
		if at > 0 {
			at += c.Gap
		}
		if c.Head != "" {
			heads.WriteString(strings.Repeat(" ", max(0, at-Columns(heads.String()))) + c.Head)
		}
		at += wide[i]
	}
	if heads.Len() > 0 {
		lines = append(lines, strings.TrimRight(heads.String(), " "))
	}
	for _, cells := range t.lines {
		if len(cells) != n {
			lines = append(lines, strings.Join(cells, ""))
			continue
		}
		var b strings.Builder
		for i, cell := range cells {
			if wide[i] == 0 {
				continue
			}
			if b.Len() > 0 {
				b.WriteString(strings.Repeat(" ", t.Columns[i].Gap))
			}
			blanks := strings.Repeat(" ", max(0, wide[i]-Columns(cell)))
			switch t.Columns[i].Align {
			case Left:
				b.WriteString(cell + blanks)
			case Right:
				b.WriteString(blanks + cell)
			case Point:
				whole, rest := split(cell)
				b.WriteString(strings.Repeat(" ", max(0, ahead[i]-Columns(whole))) + whole + Pad(rest, behind[i]))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
		width = max(width, Columns(lines[len(lines)-1]))
	}
	return lines, max(width, Columns(heads.String()))
}
