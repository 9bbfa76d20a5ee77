package compare

import "testing"

// simulation marks a test that judges thousands of simulated rows. With -short,
// as under the race detector, it is left out: it runs in one goroutine, and ten
// times as slow there.
func simulation(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a simulation, left out with -short")
	}
}
