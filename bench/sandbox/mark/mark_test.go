package mark

import "testing"

// FuzzParseStat gives names to processes that look like the fields behind them.
func FuzzParseStat(f *testing.F) {
	for _, name := range []string{"sh", "x) S 1 (y", ")", "", "a b\n) Z 7 ", "((((", "\x00\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		want := process{parent: 42, dead: true}
		got, ok := parseStat([]byte("17 (" + name + ") Z 42 17 17 0 -1"))
		if !ok || got != want {
			t.Errorf("%q: %+v, %t", name, got, ok)
		}
		parseStat([]byte(name)) // does not panic
	})
}
