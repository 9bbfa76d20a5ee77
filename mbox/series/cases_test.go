package series

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/cases"
)

func TestSharedCases(t *testing.T) {
	cases.Run(t, map[string]cases.Check{
		"series-assembly": checkAssembly,
		"pull-request":    checkPull,
		"fuzz":            checkFuzz,
		"dependency":      checkDependency,
	}, nil)
}

func checkAssembly(c cases.Case) []string {
	var want struct {
		Messages, Series, Patches, Covers *int
		PatchesPerSeries                  []int `json:"patches_per_series"`
		CoversPerSeries                   []int `json:"covers_per_series"`
		ReceivedAll                       *bool `json:"received_all"`
		Complete                          *bool
		Version, Total                    *int
		Name                              string
		Cover                             *bool
		CoverSubject                      string `json:"cover_subject"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	messages, problems, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	col := NewCollector(Options{})
	for _, m := range messages {
		col.Add(m)
	}
	for _, p := range problems {
		col.AddProblem(p)
	}
	l := must(col.Listing())
	var perSeries, covers []int
	n := 0
	for _, s := range l.Series {
		k := 0
		if s.Cover != nil {
			k = 1
		}
		perSeries = append(perSeries, len(s.Patches))
		covers = append(covers, k)
		n += k + len(s.Patches)
	}
	miss := func(what string, got, want any) {
		if d := cmp.Diff(want, got); d != "" {
			bad = append(bad, fmt.Sprintf("%s (-want +got):\n%s", what, d))
		}
	}
	if want.Messages != nil {
		miss("messages", n+len(l.Skipped)+len(l.Problems), *want.Messages)
	}
	if want.Series != nil {
		miss("series", len(l.Series), *want.Series)
	}
	if want.PatchesPerSeries != nil {
		miss("patches of each series", perSeries, want.PatchesPerSeries)
	}
	if want.CoversPerSeries != nil {
		miss("covers of each series", covers, want.CoversPerSeries)
	}
	if len(l.Series) == 0 {
		return append(bad, "no series")
	}
	last := l.Series[len(l.Series)-1]
	if want.ReceivedAll != nil {
		miss("complete", last.Complete, *want.ReceivedAll)
	}
	if want.Complete != nil {
		miss("complete", last.Complete, *want.Complete)
	}
	if want.Version != nil {
		miss("version", last.Version, *want.Version)
	}
	if want.Total != nil {
		miss("total", last.Total, *want.Total)
	}
	if want.Name != "" {
		miss("name", last.Subject, want.Name)
	}
	if want.Cover != nil {
		miss("cover", last.Cover != nil, *want.Cover)
	}
	if want.CoverSubject != "" {
		miss("cover's subject", last.Cover.Subject, want.CoverSubject)
	}
	return bad
}

func checkPull(c cases.Case) []string {
	messages, _, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	col := NewCollector(Options{})
	for _, m := range messages {
		col.Add(m)
	}
	var reasons []string
	for _, s := range must(col.Listing()).Skipped {
		reasons = append(reasons, s.Reason)
	}
	if d := cmp.Diff([]string{"a pull request"}, reasons); d != "" {
		return []string{"skipped (-want +got):\n" + d}
	}
	return nil
}

func checkFuzz(c cases.Case) []string {
	messages, problems, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	col := NewCollector(Options{})
	for _, m := range messages {
		col.Add(m)
	}
	for _, p := range problems {
		col.AddProblem(p)
	}
	l := must(col.Listing())
	n := len(l.Skipped) + len(l.Problems)
	for _, s := range l.Series {
		n += len(s.Patches)
	}
	if n == 0 {
		return []string{"the message vanished"}
	}
	return nil
}

// checkDependency builds the series that a case describes: one that names what it
// depends on in its cover, by a Message-ID or by an archive's address.
func checkDependency(c cases.Case) []string {
	var want struct {
		DependsOn any `json:"depends_on"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	tokens := 1
	if l, ok := want.DependsOn.([]any); ok {
		tokens = len(l)
	}
	var bad []string
	for _, form := range []string{"<one.%d@example.com>", "one.%d@example.com", "https://lists.example.com/dev/one.%d@example.com/", "https://patches.example.com/project/dev/patch/one.%d@example.com/"} {
		text := ""
		var ids []mbox.Prerequisite
		for i := range tokens {
			text += fmt.Sprintf("Depends-on: "+form+"\n", i)
			ids = append(ids, mbox.Prerequisite{MessageID: fmt.Sprintf("one.%d@example.com", i)})
		}
		raw := "From: A U Thor <author@example.com>\nDate: Mon, 6 May 2024 10:00:00 +0000\nMessage-ID: <%s>\nSubject: [PATCH %d/1] x\n\n%s\n"
		col := NewCollector(Options{})
		for i, body := range []string{"Text.\n\n" + text, "---\n" + change("f", "1")} {
			m, err := mbox.ParseMessage(fmt.Appendf(nil, raw, fmt.Sprint("two.", i, "@example.com"), i, body), c.ID)
			if err != nil {
				return []string{err.Error()}
			}
			col.Add(m)
		}
		l := must(col.Listing())
		if len(l.Series) != 1 {
			return []string{fmt.Sprintf("%d series", len(l.Series))}
		}
		if d := cmp.Diff(ids, l.Series[0].Prerequisites); d != "" {
			bad = append(bad, fmt.Sprintf("%s: prerequisites (-want +got):\n%s", form, d))
		}
	}
	return bad
}
