package eval

import (
	"patchbench/bench"
	"patchbench/bench/claims"
)

// claims are the numbers that the author gives in the cover letter and in the
// commit messages, each beside what was measured. A range of commits has no
// messages here, and so no claims.
func (r *run) claims() []bench.Claim {
	s := r.e.Series
	if s == nil {
		return nil
	}
	var all []bench.Claim
	if s.Cover != nil {
		all = claims.Read(s.Cover.Body, 0)
	}
	for _, p := range s.Patches {
		all = append(all, claims.Read(p.Message, p.N)...)
	}
	return claims.Match(all, r.e.Results)
}
