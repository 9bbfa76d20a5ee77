package plain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	table := &Table{Columns: []Column{{}, {Head: "base", Gap: 2, Align: Point}, {Gap: 1}, {Gap: 9}, {Head: "verdict", Gap: 2, Align: Right}}}
	table.Add("one", "-1.25 %", "", "", "x")
	table.Add("a heading of any length stands as it is")
	table.Add("three", "100", "a", "", "yy")
	table.Add("four", "-", "bb", "", "")
	lines, width := table.Render()
	want := []string{
		"       base         verdict",
		"one     -1.25 %           x",
		"a heading of any length stands as it is",
		"three  100      a        yy",
		"four     -      bb",
	}
	if d := cmp.Diff(want, lines); d != "" || width != 27 {
		t.Errorf("width %d, -want +got:\n%s", width, d)
	}
}
