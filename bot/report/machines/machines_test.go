package machines

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// pair is a case on two machines; the second shows a share of every change.
func pair(name string, share float64) []*store.Evaluation {
	return []*store.Evaluation{cases.All[name]().Evaluation, cases.Other(cases.All[name](), 2.4, share).Evaluation}
}

func render(t *testing.T, evaluations []*store.Evaluation) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, evaluations); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if plain.Columns(line) > width || line != strings.TrimRight(line, " ") {
			t.Errorf("line %d has %d columns: %q", i+1, plain.Columns(line), line)
		}
		for _, c := range line {
			if c < ' ' || c == 0x7f || c >= 0x80 && plain.Clean(string(c)) != string(c) {
				t.Errorf("line %d holds %q", i+1, c)
			}
		}
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	three := append(pair("regression-of-13", 0), cases.All["regression-of-13"]().Evaluation)
	three[2].ID, three[2].Host.Name = "20261130-aaaaaa", "arm1"
	for name, evaluations := range map[string][]*store.Evaluation{
		"alike":        pair("planted", 0.8),
		"on one alone": pair("regression-of-13", 0),
		"three":        three,
		"parameters":   pair("operations", 0.5),
		"group":        pair("group", 0.5),
		"nothing":      pair("nothing-found", 1),
	} {
		t.Run(name, func(t *testing.T) {
			cases.Golden(t, strings.ReplaceAll(name, " ", "-")+".txt", render(t, evaluations))
		})
	}
}

// TestEveryCase renders every kind of evaluation beside itself.
func TestEveryCase(t *testing.T) {
	for name := range cases.All {
		t.Run(name, func(t *testing.T) {
			if text := render(t, pair(name, 0.5)); strings.Count(text, "\n") > 500 {
				t.Errorf("%d lines", strings.Count(text, "\n"))
			}
		})
	}
	render(t, []*store.Evaluation{{ID: "a"}, {ID: "b"}})
}

func TestCheck(t *testing.T) {
	other := cases.All["planted"]()
	other.ID = "20261130-bbbbbb"
	other.Versions[2].Commit = strings.Repeat("ab", 20)
	shorter := cases.All["planted"]()
	shorter.ID, shorter.Versions = "20261130-cccccc", shorter.Versions[:3]
	for _, c := range []struct {
		name string
		list []*store.Evaluation
		want string // of the error, "" for none
	}{
		{"one series on two machines", pair("planted", 1), ""},
		{"a single one", pair("planted", 1)[:1], ""},
		{"none", nil, "no evaluations"},
		{"twice the same", append(pair("planted", 1), pair("planted", 1)[0]), "named twice"},
		{"another patch", append(pair("planted", 1), other.Evaluation), "not of the same code"},
		{"fewer patches", append(pair("planted", 1), shorter.Evaluation), "not of the same code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.list)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestNeverAcross has no figure of one machine in a line with another's: only
// changes, which are of no unit.
func TestNeverAcross(t *testing.T) {
	text := render(t, pair("planted", 0.8))
	tables := text[strings.Index(text, "Base against"):strings.Index(text, "Failed")]
	for _, unit := range []string{bench.Second, "ms", "MiB"} {
		if slices.Contains(strings.Fields(tables), unit) {
			t.Errorf("the tables hold figures in %s:\n%s", unit, tables)
		}
	}
}
