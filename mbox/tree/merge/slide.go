package merge

// group is a run of changed lines [start, end) of a text, empty between two lines
// that are next to each other and did not change. The groups of two texts
// correspond one to one.
type group struct {
	s          *side
	start, end int
}

func (s *side) first() group {
	g := group{s: s}
	g.grow()
	return g
}

func (g *group) grow() {
	for g.end < len(g.s.changed) && g.s.changed[g.end] {
		g.end++
	}
}

func (g *group) next() bool {
	if g.end == len(g.s.changed) {
		return false
	}
	g.start = g.end + 1
	g.end = g.start
	g.grow()
	return true
}

func (g *group) previous() {
	g.end = g.start - 1
	g.start = g.end
	g.growUp()
}

func (g *group) growUp() {
	for g.start > 0 && g.s.changed[g.start-1] {
		g.start--
	}
}

// down moves the group one line down if its first line is the one behind it, and
// takes in the group that it touches then.
func (g *group) down() bool {
	if g.end == len(g.s.lines) || g.s.lines[g.start] != g.s.lines[g.end] {
		return false
	}
	g.s.changed[g.start], g.s.changed[g.end] = false, true
	g.start, g.end = g.start+1, g.end+1
	g.grow()
	return true
}

func (g *group) up() bool {
	if g.start == 0 || g.s.lines[g.start-1] != g.s.lines[g.end-1] {
		return false
	}
	g.start, g.end = g.start-1, g.end-1
	g.s.changed[g.start], g.s.changed[g.end] = true, false
	g.growUp()
	return true
}

// settle slides every group of a text as far down as it goes, but where it can
// stand beside a group of the other text, to the last such place.
func (s *side) settle(o *side) {
	g, other := s.first(), o.first()
	for {
		if g.start < g.end {
			g.settle(&other)
		}
		if !g.next() {
			return
		}
		other.next()
	}
}

func (g *group) settle(other *group) {
	var highest int
	var beside bool
	for size := -1; size != g.end-g.start; {
		size = g.end - g.start
		for g.up() {
			other.previous()
		}
		highest = g.end
		beside = other.start < other.end
		for g.down() {
			other.next()
			beside = beside || other.start < other.end
		}
	}
	if g.end == highest || !beside {
		return
	}
	for other.start == other.end {
		g.up()
		other.previous()
	}
}
