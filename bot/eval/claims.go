package eval

import (
	"patchbench/bench"
	"patchbench/bench/claims"
)

// claims are the numbers that the author gives in the cover letter and in the
// messages of the patches or commits, each beside what was measured.
func (r *run) claims() []bench.Claim {
	all := []bench.Claim{}
	if r.values != nil {
		return all
	}
	if s := r.e.Series; s != nil {
		if s.Cover != nil {
			all = claims.Read(s.Cover.Body, 0)
		}
		for _, p := range s.Patches {
			all = append(all, claims.Read(p.Message, p.N)...)
		}
	}
	// Those of a range are in the repository alone.
	for _, st := range r.stack.Steps {
		all = append(all, claims.Read(st.Message, st.N)...)
	}
	return claims.Match(all, r.e.Results)
}
