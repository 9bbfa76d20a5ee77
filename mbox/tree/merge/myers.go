package merge

// Two texts have many shortest edit scripts, and which of them is taken decides
// whether two changes overlap. So the choice made here is that of git's default
// algorithm: Myers's, from both ends at once ("An O(ND) Difference Algorithm and
// Its Variations", 1986), with lines left out beforehand that cannot be matched
// well, and with its ways of giving up on what would take too long.

const (
	snake      = 20   // equal lines in a row that make a place worth splitting at
	promising  = 4    // how far a path must be ahead of its cost to be split at
	patience   = 256  // cost from which a good place is enough
	window     = 100  // lines that are looked at around a frequent one
	mostEqual  = 1024 // bound of how often a line may be there without being frequent
	noFrequent = 4    // share of unmatched lines around a frequent one, one in
)

// side is one of the two texts: its lines as numbers, equal for equal lines, and
// which of them changed.
type side struct {
	lines   []int
	changed []bool
	kept    []int // the lines that are compared, by index
}

// compare marks the lines that changed between two texts.
func compare(before, after []string) (a, b *side) {
	ids := map[string]int{}
	number := func(text []string) *side {
		s := &side{lines: make([]int, len(text)), changed: make([]bool, len(text))}
		for i, l := range text {
			id, ok := ids[l]
			if !ok {
				id = len(ids)
				ids[l] = id
			}
			s.lines[i] = id
		}
		return s
	}
	a, b = number(before), number(after)
	a.keep(b, len(ids))
	m := &myers{a: pick(a), b: pick(b), sideA: a, sideB: b}
	diagonals := len(m.a) + len(m.b) + 3
	m.forward, m.back = make([]int, 2*diagonals+2), make([]int, 2*diagonals+2)
	m.zero = len(m.b) + 1
	m.most = max(roughRoot(diagonals), patience)
	m.box(0, len(m.a), 0, len(m.b), false)
	a.settle(b)
	b.settle(a)
	return a, b
}

func pick(s *side) []int {
	list := make([]int, len(s.kept))
	for i, at := range s.kept {
		list[i] = s.lines[at]
	}
	return list
}

// roughRoot is a power of two near the square root.
func roughRoot(n int) int {
	r := 1
	for ; n > 0; n >>= 2 {
		r <<= 1
	}
	return r
}

// keep leaves out of the comparison what both texts have at their ends, lines
// that the other text has not, and frequent lines among such.
func (s *side) keep(o *side, ids int) {
	start := 0
	for start < len(s.lines) && start < len(o.lines) && s.lines[start] == o.lines[start] {
		start++
	}
	tail := 0
	for tail < min(len(s.lines), len(o.lines))-start && s.lines[len(s.lines)-1-tail] == o.lines[len(o.lines)-1-tail] {
		tail++
	}
	count := [2][]int{make([]int, ids), make([]int, ids)}
	for i, x := range []*side{s, o} {
		for _, l := range x.lines {
			count[i][l]++
		}
	}
	s.choose(start, len(s.lines)-tail, count[1])
	o.choose(start, len(o.lines)-tail, count[0])
}

// How often a line stands in the other text.
const (
	never = iota
	some
	often
)

// choose fills kept with lines of [start, end).
func (s *side) choose(start, end int, there []int) {
	limit := min(roughRoot(len(s.lines)), mostEqual)
	how := make([]byte, len(s.lines))
	for i := start; i < end; i++ {
		switch n := there[s.lines[i]]; {
		case n >= limit:
			how[i] = often
		case n > 0:
			how[i] = some
		}
	}
	for i := start; i < end; i++ {
		if how[i] == some || how[i] == often && !lost(how, i, start, end) {
			s.kept = append(s.kept, i)
		} else {
			s.changed[i] = true
		}
	}
}

// lost says that a frequent line stands among lines that are never matched.
func lost(how []byte, i, start, end int) bool {
	run := func(step, stop int) (never1, often1 int) {
		often1 = 1
		for k := i + step; k != stop && how[k] != some; k += step {
			if how[k] == never {
				never1++
			} else {
				often1++
			}
		}
		return never1, often1
	}
	unmatched, frequent := run(-1, max(start, i-window)-1)
	if unmatched == 0 {
		return false
	}
	more, others := run(1, min(end, i+window+1))
	if more == 0 {
		return false
	}
	unmatched, frequent = unmatched+more, frequent+others
	return frequent*noFrequent < frequent+unmatched
}

// myers is the state of one comparison. A path on diagonal d has come to line i
// of a and i-d of b; forward[zero+d] and back[zero+d] are the i of the furthest.
type myers struct {
	a, b          []int
	sideA, sideB  *side
	forward, back []int
	zero          int
	most          int
}

// box marks what changed in a[a0:a1] against b[b0:b1].
func (m *myers) box(a0, a1, b0, b1 int, minimal bool) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && m.a[a1-1] == m.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	switch {
	case a0 == a1:
		for ; b0 < b1; b0++ {
			m.sideB.changed[m.sideB.kept[b0]] = true
		}
	case b0 == b1:
		for ; a0 < a1; a0++ {
			m.sideA.changed[m.sideA.kept[a0]] = true
		}
	default:
		s := m.split(a0, a1, b0, b1, minimal)
		m.box(a0, s.a, b0, s.b, s.minimalLow)
		m.box(s.a, a1, s.b, b1, s.minimalHigh)
	}
}

type split struct {
	a, b                    int
	minimalLow, minimalHigh bool
}

const beyond = int(^uint(0) >> 1)

// split finds where the shortest path through a box passes, or, without minimal,
// a good place that is found sooner.
func (m *myers) split(a0, a1, b0, b1 int, minimal bool) split {
	low, high := a0-b1, a1-b0 // the diagonals of the box
	fmid, bmid := a0-b0, a1-b1
	odd := (fmid-bmid)&1 != 0
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	f, r := m.forward, m.back
	z := m.zero
	f[z+fmid], r[z+bmid] = a0, a1
	for cost := 1; ; cost++ {
		long := false
		if fmin > low {
			fmin--
			f[z+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < high {
			fmax++
			f[z+fmax+1] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			i := f[z+d+1]
			if f[z+d-1] >= i {
				i = f[z+d-1] + 1
			}
			from, k := i, i-d
			for i < a1 && k < b1 && m.a[i] == m.b[k] {
				i, k = i+1, k+1
			}
			long = long || i-from > snake
			f[z+d] = i
			if odd && bmin <= d && d <= bmax && r[z+d] <= i {
				return split{i, k, true, true}
			}
		}
		if bmin > low {
			bmin--
			r[z+bmin-1] = beyond
		} else {
			bmin++
		}
		if bmax < high {
			bmax++
			r[z+bmax+1] = beyond
		} else {
			bmax--
		}
		for d := bmax; d >= bmin; d -= 2 {
			i := r[z+d-1]
			if i >= r[z+d+1] {
				i = r[z+d+1] - 1
			}
			from, k := i, i-d
			for i > a0 && k > b0 && m.a[i-1] == m.b[k-1] {
				i, k = i-1, k-1
			}
			long = long || from-i > snake
			r[z+d] = i
			if !odd && fmin <= d && d <= fmax && i <= f[z+d] {
				return split{i, k, true, true}
			}
		}
		if minimal {
			continue
		}
		in := reach{m, a0, a1, b0, b1}
		if long && cost > patience {
			if s, ok := in.ahead(cost, fmin, fmax, fmid); ok {
				return s
			}
			if s, ok := in.behind(cost, bmin, bmax, bmid); ok {
				return s
			}
		}
		if cost >= m.most {
			return in.furthest(fmin, fmax, bmin, bmax)
		}
	}
}

// reach looks at how far the paths in a box have come.
type reach struct {
	*myers
	a0, a1, b0, b1 int
}

// ahead finds the best forward path that has come far for its cost and ends
// behind a long run of equal lines.
func (m reach) ahead(cost, lo, hi, mid int) (s split, ok bool) {
	best := 0
	for d := hi; d >= lo; d -= 2 {
		i := m.forward[m.zero+d]
		k := i - d
		v := i - m.a0 + k - m.b0 - max(d-mid, mid-d)
		if v <= promising*cost || v <= best || m.a0+snake > i || i >= m.a1 || m.b0+snake > k || k >= m.b1 {
			continue
		}
		if n := 1; equalRun(snake, func(j int) bool { return m.a[i-n-j] == m.b[k-n-j] }) {
			best, s = v, split{i, k, true, false}
		}
	}
	return s, best > 0
}

// behind is ahead for the paths from the end.
func (m reach) behind(cost, lo, hi, mid int) (s split, ok bool) {
	best := 0
	for d := hi; d >= lo; d -= 2 {
		i := m.back[m.zero+d]
		k := i - d
		v := m.a1 - i + m.b1 - k - max(d-mid, mid-d)
		if v <= promising*cost || v <= best || m.a0 >= i || i > m.a1-snake || m.b0 >= k || k > m.b1-snake {
			continue
		}
		if equalRun(snake, func(j int) bool { return m.a[i+j] == m.b[k+j] }) {
			best, s = v, split{i, k, false, true}
		}
	}
	return s, best > 0
}

func equalRun(n int, equal func(int) bool) bool {
	for j := range n {
		if !equal(j) {
			return false
		}
	}
	return true
}

// furthest gives up and takes the path that has come furthest from its end.
func (m reach) furthest(fmin, fmax, bmin, bmax int) split {
	far, farA := -1, -1
	for d := fmax; d >= fmin; d -= 2 {
		i := min(m.forward[m.zero+d], m.a1)
		k := i - d
		if k > m.b1 {
			i, k = m.b1+d, m.b1
		}
		if i+k > far {
			far, farA = i+k, i
		}
	}
	near, nearA := beyond, beyond
	for d := bmax; d >= bmin; d -= 2 {
		i := max(m.a0, m.back[m.zero+d])
		k := i - d
		if k < m.b0 {
			i, k = m.b0+d, m.b0
		}
		if i+k < near {
			near, nearA = i+k, i
		}
	}
	if m.a1+m.b1-near < far-(m.a0+m.b0) {
		return split{farA, far - farA, true, false}
	}
	return split{nearA, near - nearA, false, true}
}
