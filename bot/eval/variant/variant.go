// Package variant is about the choices of a suite's build parameters, each of which is
// a build of every version with rows of its own. In go builds and the versions to be
// measured of each variant; out come the state of a version that has several builds,
// and boxes in which the benchmarks of each run. Which versions are measured, and
// when, is not decided here.
package variant

import (
	"slices"
	"strings"

	"patchbench/bench"
)

// Enter enters a build into a version, as its variant k, which is its only one if it
// has no list of them; same is the version whose build it equals, nil for none.
func Enter(v *bench.Version, k int, b bench.Build, same *int) {
	state := b.State
	if same != nil {
		state = bench.SameBuild
	}
	if v.Variants == nil {
		v.State, v.SameAs, v.Digest, v.LogTail, v.BuildSeconds = state, same, b.Digest, b.LogTail, b.Elapsed.Seconds()
		return
	}
	x := &v.Variants[k]
	x.State, x.SameAs, x.Digest, x.LogTail, x.BuildSeconds = state, same, b.Digest, b.LogTail, b.Elapsed.Seconds()
	settle(v)
}

// settle makes a version's state that of its variants: built if any is another
// build than before, the same if all are the same as one version's, failed if
// none is there.
func settle(v *bench.Version) {
	all := func(state string) bool {
		return !slices.ContainsFunc(v.Variants, func(x bench.VariantBuild) bool { return x.State != state })
	}
	first := v.Variants[0]
	v.State, v.SameAs, v.LogTail, v.Digest, v.BuildSeconds = bench.Built, nil, "", "", 0
	switch {
	case all(bench.BuildFailed):
		v.State, v.LogTail = bench.BuildFailed, first.LogTail
	case all(bench.SameBuild) && !slices.ContainsFunc(v.Variants, func(x bench.VariantBuild) bool { return *x.SameAs != *first.SameAs }):
		v.State, v.SameAs = bench.SameBuild, first.SameAs
	}
	var digests []string
	for _, x := range v.Variants {
		digests = append(digests, x.Digest)
		v.BuildSeconds += x.BuildSeconds
	}
	if v.State != bench.BuildFailed {
		v.Digest = strings.Join(digests, " ")
	}
}

// With tells in words which variant is meant: " with NAME=VALUE", "" for the only one.
func With(params map[string]string) string {
	if len(params) == 0 {
		return ""
	}
	return " with " + strings.Trim(bench.RowName("", params), "{}")
}
