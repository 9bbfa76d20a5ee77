package report

import "strings"

// How a column's cells stand under each other.
type alignment int

const (
	left alignment = iota
	right
	point // on the decimal point, or on the end of the number's whole part
)

// A column of a table. Columns without any text vanish together with their gap.
type column struct {
	head  string // stands above this column and those behind it without one
	gap   int    // blanks before it
	align alignment
}

// A table is lines of cells; a line of one cell is a heading and takes no part
// in the alignment.
type table struct {
	columns []column
	lines   [][]string
}

func (t *table) add(cells ...string) { t.lines = append(t.lines, cells) }

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

// render gives the lines of the table, with a line of heads if there are any,
// and the columns of the longest line that is no heading.
func (t *table) render() (lines []string, width int) {
	n := len(t.columns)
	wide, behind := make([]int, n), make([]int, n) // behind: of which after the point
	ahead := make([]int, n)
	for _, cells := range t.lines {
		if len(cells) != n {
			continue
		}
		for i, cell := range cells {
			if t.columns[i].align == point {
				whole, rest := split(cell)
				ahead[i] = max(ahead[i], columns(whole))
				behind[i] = max(behind[i], columns(rest))
				wide[i] = ahead[i] + behind[i]
			} else {
				wide[i] = max(wide[i], columns(cell))
			}
		}
	}
	// A head may be wider than what stands below it.
	for i := 0; i < n; {
		last, sum := i, wide[i]
		for last+1 < n && t.columns[last+1].head == "" {
			last++
			if wide[last] > 0 {
				sum += wide[last] + t.columns[last].gap
			}
		}
		if lack := columns(t.columns[i].head) - sum; lack > 0 && sum > 0 {
			wide[i] += lack
			ahead[i] += lack
		}
		i = last + 1
	}
	var heads strings.Builder
	at := 0
	for i, c := range t.columns {
		if wide[i] == 0 {
			continue
		}
		if at > 0 {
			at += c.gap
		}
		if c.head != "" {
			heads.WriteString(strings.Repeat(" ", max(0, at-columns(heads.String()))) + c.head)
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
				b.WriteString(strings.Repeat(" ", t.columns[i].gap))
			}
			blanks := strings.Repeat(" ", max(0, wide[i]-columns(cell)))
			switch t.columns[i].align {
			case left:
				b.WriteString(cell + blanks)
			case right:
				b.WriteString(blanks + cell)
			case point:
				whole, rest := split(cell)
				b.WriteString(strings.Repeat(" ", max(0, ahead[i]-columns(whole))) + whole + pad(rest, behind[i]))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
		width = max(width, columns(lines[len(lines)-1]))
	}
	return lines, max(width, columns(heads.String()))
}
