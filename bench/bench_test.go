package bench

import "testing"

func TestScheduling(t *testing.T) {
	for want, h := range map[string]Host{
		"":                             {Name: "m"},
		"governor powersave":           {Governor: "powersave"},
		"sessions scheduled as groups": {Autogroup: true},
		"governor performance, sessions scheduled as groups": {Governor: "performance", Autogroup: true},
	} {
		if got := h.Scheduling(); got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}
