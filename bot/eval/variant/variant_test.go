package variant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// A version's state is that of all its variants together, and each row's that of
// its own.
func TestEnter(t *testing.T) {
	as := func(n int) *int { return &n }
	built, failed := bench.Build{State: bench.Built, Digest: "d", Elapsed: time.Second}, bench.Build{State: bench.BuildFailed, LogTail: "boom"}
	type entry struct {
		b    bench.Build
		same *int
	}
	for _, tt := range []struct {
		name   string
		pool   entry
		none   entry
		state  string
		sameAs *int
	}{
		{"both built", entry{built, nil}, entry{built, nil}, bench.Built, nil},
		{"one the same", entry{built, as(0)}, entry{built, nil}, bench.Built, nil},
		{"both the same", entry{built, as(1)}, entry{built, as(1)}, bench.SameBuild, as(1)},
		{"the same as different versions", entry{built, as(0)}, entry{built, as(1)}, bench.Built, nil},
		{"one fails", entry{failed, nil}, entry{built, nil}, bench.Built, nil},
		{"one fails, one the same", entry{failed, nil}, entry{built, as(0)}, bench.Built, nil},
		{"both fail", entry{failed, nil}, entry{failed, nil}, bench.BuildFailed, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := bench.Version{N: 2, Variants: []bench.VariantBuild{
				{Params: map[string]string{"alloc": "pool"}}, {Params: map[string]string{"alloc": "none"}},
			}}
			Enter(&v, 0, tt.pool.b, tt.pool.same)
			Enter(&v, 1, tt.none.b, tt.none.same)
			if v.State != tt.state || !cmp.Equal(v.SameAs, tt.sameAs) {
				t.Errorf("state %s, same as %v; want %s, %v", v.State, v.SameAs, tt.state, tt.sameAs)
			}
			for alloc, e := range map[string]entry{"pool": tt.pool, "none": tt.none} {
				want := e.b.State
				if e.same != nil {
					want = bench.SameBuild
				}
				if x := v.With(map[string]string{"alloc": alloc, "n": "1"}); x.State != want || !cmp.Equal(x.SameAs, e.same) || x.LogTail != e.b.LogTail {
					t.Errorf("with %s: %+v, want %s", alloc, x, want)
				}
			}
		})
	}
	t.Run("no variants", func(t *testing.T) {
		v := bench.Version{N: 1}
		Enter(&v, 0, built, nil)
		if v.State != bench.Built || v.Digest != "d" || v.BuildSeconds != 1 || v.With(map[string]string{"n": "1"}).State != bench.Built {
			t.Errorf("version %+v", v)
		}
	})
}
