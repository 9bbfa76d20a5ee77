// Package comment writes what stands at a pull request: the text of the one
// comment and of the check run. It is pure; bot/github delivers it.
//
// In go a task's state, or a stored evaluation; out come Markdown and a Check.
//
//	<!-- patchbench: kept up to date here, do not edit -->
//	**Worse.** `2/5 makes hash slower: cpu +5.1 % (4.6 .. 5.5)`
//
//	2/5 is [`08d12e6b76c2`](https://github.com/owner/name/pull/12/commits/...)
//	...
//	Measured: `3f9a2c1d0b7e` against `b1c0a7e25d33`, where it left `main`. [The whole report](https://bench.example.org/evaluations/20261130-3f9a2c).
//
//	Earlier:
//	- `77c0ff3a2b1d` against `b1c0a7e25d33`: better, [report](...)
//
// All that comes from outside, such as benchmarks' names, output and reasons,
// stands inside code alone, so that it mentions, closes, links and loads nothing.
package comment

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bot/report/markdown"
	"patchbench/bot/report/plain"
	"patchbench/config/service"
	"patchbench/store"
)

// Marker begins each comment of ours, and is how it is found again.
const Marker = "<!-- patchbench: kept up to date here, do not edit -->"

// GitHub's limits are 65,536 characters for a comment and 65,535 for a check's
// summary; ours are in bytes, which are no fewer, and leave room for what is
// put around the report.
const (
	maxComment = 65000
	maxReport  = 60000
	maxReason  = 4000 // bytes of a reason
	maxTitle   = 200  // columns of a check's title
)

// CheckName is the name of the check run.
const CheckName = "Patchbench"

// The states of a check run.
const (
	CheckQueued    = "queued"
	CheckRunning   = "in_progress"
	CheckCompleted = "completed"
)

// Check is a check run as it should be; without a Status there should be none.
type Check struct {
	Status     string    `json:"status"`
	Conclusion string    `json:"conclusion,omitempty"` // of a completed one
	Title      string    `json:"title"`
	Summary    string    `json:"summary"` // Markdown
	DetailsURL string    `json:"details_url,omitempty"`
	Key        string    `json:"key"` // of the task: another one gets a check run of its own
	Started    time.Time `json:"started,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
}

// Text is what should stand at a pull request.
type Text struct {
	Comment string
	Check   Check
}

// About is what a text is about.
type About struct {
	Key  string // of the task
	Head string // the commit that is or was evaluated
	// URL is the address of the evaluation's page, Pull that of the pull request;
	// "" for none.
	URL     string
	Pull    string
	Branch  string // the base branch, "" if it is not known
	Started time.Time
	Now     time.Time
}

// Standing tells of a task that has no evaluation: where it stands, and its
// reason or progress.
func Standing(a About, state store.State, detail string) Text {
	head := markdown.Code(short(a.Head))
	detail = strings.TrimSpace(detail)
	c := Check{Status: CheckCompleted, Conclusion: "neutral", Key: a.Key, Started: a.Started, Ended: a.Now}
	var lead string
	switch state {
	case store.Queued:
		c.Status, c.Title = CheckQueued, "Queued"
		lead = "**Queued.** " + head + " waits for a machine."
	case store.Running:
		c.Status, c.Title = CheckRunning, "Running"
		lead = "**Running.** " + head + " is being measured"
		if detail != "" {
			c.Title += ": " + line(detail, 80)
			lead += ": " + markdown.Code(line(detail, 80))
		}
		lead += "."
	case store.Held:
		c = Check{} // a check run that is done cannot wait again once this is approved
		lead = "**Waits for approval.** " + head + " is not measured until somebody with write access comments `/bench`."
	case store.Superseded:
		c.Conclusion, c.Title = "cancelled", "Superseded by a newer commit"
		lead = "**Superseded.** " + head + " is no longer the newest commit."
	case store.Stopped, store.Ignored, store.Incomplete:
		c.Conclusion, c.Title = "cancelled", "Stopped"
		lead = "**Stopped.** " + head + " was not measured."
	default:
		c.Title = "Could not be measured"
		lead = "**Could not be measured:** " + head + ". Somebody with write access can try again with `/bench`."
	}
	switch c.Status {
	case CheckQueued:
		c.Conclusion, c.Started, c.Ended = "", time.Time{}, time.Time{}
	case CheckRunning:
		c.Conclusion, c.Ended = "", time.Time{}
	default: // completed, or none
		if detail != "" {
			lead += "\n\n" + markdown.Fence(reason(detail))
		}
	}
	lead = strings.TrimRight(lead, "\n") + "\n"
	if c.Status != "" {
		c.Summary = lead
	}
	return Text{Comment: Marker + "\n" + lead, Check: c}
}

// Report tells of an evaluation. policy is service.Neutral or service.Strict.
func Report(e *store.Evaluation, a About, policy string) Text { return report(e, a, policy, maxReport) }

func report(e *store.Evaluation, a About, policy string, limit int) Text {
	text, cut := markdown.Within(e, limit)
	if named := commits(e, a.Pull); named != "" { // right below the first line, which counts them
		lead, rest, _ := strings.Cut(text, "\n")
		text = lead + "\n\n" + named + rest
	}
	foot := "\nMeasured: " + markdown.Code(short(a.Head))
	if base := short(e.Base.Commit); base != "?" {
		foot += " against " + markdown.Code(base)
		if a.Branch != "" {
			foot += ", where it left " + markdown.Code(line(a.Branch, 80))
		}
	}
	foot += "."
	link, linked := address(a.URL)
	switch {
	case cut && linked:
		foot += " The report is cut to what fits here: [all of it](" + link + ")."
	case linked:
		foot += " [The whole report](" + link + ")."
	case cut:
		foot += " The report is cut to what fits here; the bot's operator has all of it: " + markdown.Code("bot report "+line(e.ID, 40)) + "."
	}
	c := Check{
		Status: CheckCompleted, Conclusion: conclusion(e, policy), Key: a.Key, Started: a.Started, Ended: a.Now,
		Title: line(e.Headline, maxTitle), Summary: text + foot + "\n",
	}
	if linked {
		c.DetailsURL = link
	}
	return Text{Comment: Marker + "\n" + c.Summary, Check: c}
}

// maxCommits is how many commits are named.
const maxCommits = 5

// commits names the commits that changed something, as a pull request's page
// shows no numbers: with links to them in there. "" if there are none.
func commits(e *store.Evaluation, pull string) string {
	changed := map[int]bool{}
	for _, c := range e.Results {
		for _, s := range c.Steps {
			if c.Tested && (s.Verdict == bench.Better || s.Verdict == bench.Worse) {
				changed[s.N] = true
			}
		}
	}
	for _, f := range e.Failures {
		changed[f.N] = true
	}
	page, linked := address(pull)
	last := 0
	for _, v := range e.Versions {
		last = max(last, v.N)
	}
	var list []string
	for _, v := range e.Versions {
		id := short(v.Commit)
		if v.N == 0 || id == "?" || !changed[v.N] && v.State != bench.BuildFailed {
			continue
		}
		if len(list) == maxCommits {
			list = append(list, "...")
			break
		}
		item := markdown.Code(id)
		if linked && strings.Trim(v.Commit, "0123456789abcdef") == "" {
			item = "[" + item + "](" + page + "/commits/" + v.Commit + ")"
		}
		list = append(list, fmt.Sprintf("%d/%d is %s", v.N, last, item))
	}
	if list == nil {
		return ""
	}
	return strings.Join(list, ", ") + "\n"
}

// conclusion is what the check says to who merges. Not to know is no failure.
func conclusion(e *store.Evaluation, policy string) string {
	unbuilt := slices.ContainsFunc(e.Versions, func(v bench.Version) bool { return v.State == bench.BuildFailed })
	switch e.Verdict {
	case bench.Better, bench.Same:
		if !unbuilt {
			return "success"
		}
	case bench.Unclear:
		if !unbuilt {
			return "neutral"
		}
	}
	if policy == service.Strict {
		return "failure"
	}
	return "neutral"
}

// Earlier is a run before the one that the comment tells of.
type Earlier struct {
	Head    string
	Base    string // the commit that it was compared with, "" if it is not known
	Outcome string // a verdict or a state, of our words
	URL     string // "" for none
}

// WithEarlier adds the runs before to a comment, as many as fit.
func WithEarlier(text string, all []Earlier) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(text, "\n") + "\n")
	for i, e := range all {
		item := "- " + markdown.Code(short(e.Head))
		if base := short(e.Base); base != "?" {
			item += " against " + markdown.Code(base)
		}
		item += ": " + markdown.Code(line(e.Outcome, 40))
		if link, ok := address(e.URL); ok {
			item += ", [report](" + link + ")"
		}
		item += "\n"
		if i == 0 {
			item = "\nEarlier:\n" + item
		}
		if b.Len()+len(item) > maxComment {
			break
		}
		b.WriteString(item)
	}
	return b.String()
}

// short is a commit as people write it; what is none is shown as nothing.
func short(commit string) string {
	for i, r := range commit {
		if i == 12 {
			return commit[:12]
		}
		if !strings.ContainsRune("0123456789abcdef", r) {
			return "?"
		}
	}
	if commit == "" {
		return "?"
	}
	return commit
}

// line makes foreign text one clean line of at most n columns.
func line(s string, n int) string {
	s = plain.Cut(strings.Join(strings.Fields(plain.Clean(strings.ReplaceAll(s, "\n", " "))), " "), n)
	if s == "" {
		return "-"
	}
	return s
}

// reason makes foreign text clean lines.
func reason(s string) []string {
	var lines []string
	size := 0
	for text := range strings.Lines(s) {
		text = plain.Cut(plain.Clean(strings.TrimRight(text, "\r\n")), 200)
		if size += len(text); size > maxReason {
			return append(lines, "...")
		}
		lines = append(lines, text)
	}
	return lines
}

// address makes an address safe inside (); ok is false if it is none of the web.
func address(s string) (link string, ok bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return "", false
	}
	link = u.String()
	for _, r := range link {
		if r <= ' ' || r > '~' || strings.ContainsRune("()<>\\\"`[]", r) {
			return "", false
		}
	}
	return link, true
}
