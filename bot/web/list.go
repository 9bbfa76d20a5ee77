package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bot/report/history"
	"patchbench/bot/report/html"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// What the templates show. Text is clean and not yet escaped.
type (
	choice struct {
		Name, Link string
		Chosen     bool
	}
	choices struct {
		Name string
		List []choice
	}
	moment struct{ Machine, Text string } // a time, for programs and for people
	entry  struct {
		ID, Class, Word, Headline, Subject string
		Time                               moment
		About                              []string
	}
	listView struct {
		Filters []choices
		Entries []entry
		More    string // link to what is older
		Newest  string // link back, if this is not the first page
		Nothing string
	}
	task struct {
		Title, Evaluation string
		Class, State      string
		About             []string
		Reason, Progress  string
		Time              moment
	}
	tasks struct {
		Name  string
		Tasks []task
		More  string
	}
	queueView struct {
		Filters []choices
		Groups  []tasks
		Nothing string
	}
	historyView struct {
		Benchmarks []choice
		Nothing    string
	}
)

// perPage is how many entries a list shows at a time.
const perPage = 50

// words are the verdicts of evaluations as people read them, in the order of
// the filter.
var words = []struct {
	verdict bench.Verdict
	word    string
}{
	{bench.Worse, "Worse"}, {bench.Mixed, "Mixed"}, {bench.Better, "Better"}, {bench.Same, "No change"},
	{bench.Unclear, "Unclear"}, {bench.FailedSeries, "Failed"},
}

func at(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{t.UTC().Format(time.RFC3339), t.UTC().Format("2006-01-02 15:04") + " UTC"}
}

// about cleans what is said about an entry and leaves out what is empty.
func about(parts ...string) (all []string) {
	for _, s := range parts {
		if s = strings.TrimSpace(plain.Clean(s)); s != "" {
			all = append(all, plain.Cut(s, 120))
		}
	}
	return all
}

// query is the address of this page with one value changed; "" takes it off.
func query(r *http.Request, changes ...string) string {
	q := url.Values{}
	for name, values := range r.URL.Query() {
		if slices.Contains([]string{"project", "verdict", "state", "benchmark", "metric", "days", "before"}, name) {
			q.Set(name, values[0])
		}
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if q.Del(changes[i]); changes[i+1] != "" {
			q.Set(changes[i], changes[i+1])
		}
	}
	if len(q) == 0 {
		return "?"
	}
	return "?" + q.Encode()
}

// filter makes the links that choose one of some values of a parameter.
func filter(r *http.Request, title, name string, values, names []string) choices {
	now := r.URL.Query().Get(name)
	c := choices{Name: title, List: []choice{{"all", query(r, name, "", "before", ""), now == ""}}}
	for i, v := range values {
		c.List = append(c.List, choice{plain.Clean(names[i]), query(r, name, v, "before", ""), now == v})
	}
	return c
}

// projects are the names of all projects, and the one that is asked for, if it
// may have been one once.
func (h *handler) projects(r *http.Request) choices {
	var names []string
	for _, p := range h.cfg().Projects {
		names = append(names, p.Name)
	}
	if now := r.URL.Query().Get("project"); now != "" && !slices.Contains(names, now) {
		names = append(names, now)
	}
	return filter(r, "Project", "project", names, names)
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := store.EvaluationFilter{Project: q.Get("project"), Verdict: bench.Verdict(q.Get("verdict")), Before: q.Get("before"), Limit: perPage + 1}
	var verdicts, names []string
	for _, w := range words {
		verdicts, names = append(verdicts, string(w.verdict)), append(names, w.word)
	}
	if f.Verdict != "" && !slices.Contains(verdicts, string(f.Verdict)) {
		return badRequest("There is no such verdict; it is one of %s.", strings.Join(verdicts, ", "))
	}
	all, err := h.store.Evaluations(r.Context(), f)
	if err != nil {
		return err
	}
	v := listView{Filters: []choices{h.projects(r), filter(r, "Verdict", "verdict", verdicts, names)}}
	if f.Before != "" {
		v.Newest = query(r, "before", "")
	}
	if len(all) > perPage {
		all = all[:perPage]
		v.More = query(r, "before", all[perPage-1].ID)
	}
	for _, e := range all {
		v.Entries = append(v.Entries, entryOf(e))
	}
	if len(all) == 0 {
		v.Nothing = "No evaluations yet. What waits to be evaluated stands in the queue."
		if f.Project != "" || f.Verdict != "" || f.Before != "" {
			v.Nothing = "No evaluation is like that."
		}
	}
	return h.page(w, r, http.StatusOK, "list", view{Title: "Evaluations", Content: v})
}

func entryOf(e store.Listed) entry {
	out := entry{ID: e.ID, Class: "unclear", Word: "Being measured", Time: at(e.Created), Subject: plain.Clean(e.Subject)}
	for _, w := range words {
		if w.verdict == e.Verdict {
			out.Class, out.Word = string(w.verdict), w.word
		}
	}
	if e.Verdict == bench.FailedSeries {
		out.Class = "worse"
	}
	out.Headline = plain.Clean(e.Headline)
	if n := len(out.Word) + 1; len(out.Headline) > n && strings.EqualFold(out.Headline[:n], out.Word+":") {
		out.Headline = strings.TrimSpace(out.Headline[n:])
	}
	if out.Subject == "" {
		out.Subject = "A range of commits"
	}
	rounds := ""
	if e.Rounds > 0 {
		rounds = fmt.Sprintf("%d rounds", e.Rounds)
	}
	stopped := ""
	if e.Stopped == store.StoppedInterrupted {
		stopped = "interrupted"
	}
	suite := e.Suite
	if suite == e.Project {
		suite = ""
	}
	out.About = about(version(e.Version), e.Project, e.Ref, suite, e.Host, rounds, stopped)
	return out
}

// order is that of the queue page: what is going on, what waits, what ended.
var order = []struct {
	state       store.State
	name, class string
}{
	{store.Running, "Running", ""}, {store.Queued, "Waiting", ""}, {store.Held, "Held for approval", "unclear"},
	{store.Done, "Done", "better"}, {store.Failed, "Failed", "worse"}, {store.Incomplete, "Incomplete", "unclear"},
	{store.Stopped, "Stopped", ""}, {store.Superseded, "Superseded", ""}, {store.Ignored, "Ignored", ""},
}

// few is how many tasks of each ended state the queue page shows.
const few = 10

func (h *handler) queue(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	only, project := store.State(q.Get("state")), q.Get("project")
	before, err := number(q.Get("before"))
	if err != nil {
		return badRequest("before is the number of a task.")
	}
	var states, names []string
	for _, o := range order {
		states, names = append(states, string(o.state)), append(names, o.name)
	}
	if only != "" && !slices.Contains(states, string(only)) {
		return badRequest("There is no such state; it is one of %s.", strings.Join(states, ", "))
	}
	v := queueView{Filters: []choices{h.projects(r), filter(r, "State", "state", states, names)}}
	for _, o := range order {
		limit := few
		if only == o.state || o.state == store.Running || o.state == store.Queued || o.state == store.Held {
			limit = perPage
		}
		if only != "" && only != o.state {
			continue
		}
		f := store.TaskFilter{States: []store.State{o.state}, Project: project, Limit: limit + 1, Before: before}
		all, err := h.store.Tasks(r.Context(), f)
		if err != nil {
			return err
		}
		group := tasks{Name: o.name}
		if len(all) > limit {
			all = all[:limit]
			group.More = query(r, "state", string(o.state), "before", strconv.FormatInt(all[limit-1].ID, 10))
		}
		for i := range all {
			group.Tasks = append(group.Tasks, taskOf(&all[i], o.class))
		}
		if len(all) > 0 {
			v.Groups = append(v.Groups, group)
		}
	}
	if len(v.Groups) == 0 {
		v.Nothing = "Nothing is there."
	}
	return h.page(w, r, http.StatusOK, "queue", view{Title: "Queue", Content: v})
}

func taskOf(t *store.Task, class string) task {
	out := task{Title: plain.Clean(t.Title), Evaluation: t.Evaluation, Class: class, State: string(t.State),
		Reason: plain.Clean(t.Reason), Progress: plain.Clean(t.Progress), Time: at(t.Created)}
	if out.Title == "" {
		out.Title = "(no title)"
	}
	author := t.Author.Name
	if author == "" {
		author = t.Author.Email
	}
	switch t.State {
	case store.Running:
		out.Time = at(t.Started)
		if t.Worker != "" {
			out.About = about("on " + t.Worker)
		}
	case store.Queued, store.Held:
		out.Progress = ""
	default:
		out.Progress = ""
		if !t.Ended.IsZero() {
			out.Time = at(t.Ended)
		}
	}
	attempt := ""
	if t.Attempts > 1 {
		attempt = fmt.Sprintf("attempt %d", t.Attempts)
	}
	from := t.List
	if t.Kind == store.KindPull {
		from = t.Ref
	}
	out.About = append(about(fmt.Sprintf("job %d", t.ID), version(t.Version), author, from, t.Project, attempt), out.About...)
	return out
}

// version names a version of a series that is not the first.
func version(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("v%d", n)
}

func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return n, err
}

func (h *handler) history(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	benchmark, metric := q.Get("benchmark"), q.Get("metric")
	if benchmark == "" {
		return h.benchmarks(w, r)
	}
	days, err := number(q.Get("days"))
	if err != nil || days > 100_000 {
		return badRequest("days is how many days back the history begins.")
	}
	var since time.Time
	if days > 0 {
		since = h.now().AddDate(0, 0, -int(days))
	}
	select {
	case h.rendering <- struct{}{}:
		defer func() { <-h.rendering }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	points, err := h.store.History(r.Context(), benchmark, metric, since)
	if err != nil {
		return err
	}
	if metric == "" {
		points = history.Telling(points)
	}
	if len(points) == 0 {
		return missing("There are no figures of that.")
	}
	var body strings.Builder
	if err := html.History(&body, strings.TrimSpace(benchmark+" "+metric), history.Tracks(points, 0)); err != nil {
		return err
	}
	page := among([]byte(body.String()), r.URL.Path)
	if unchanged(w, r, tag(body.String())) {
		return nil
	}
	w.Header().Set("Content-Security-Policy", policyOf(page))
	send(w, r, "text/html; charset=utf-8", &rendered{body: page, packed: pack(page)})
	return nil
}

// benchmarks lists what there is a history of.
func (h *handler) benchmarks(w http.ResponseWriter, r *http.Request) error {
	names, err := h.store.Benchmarks(r.Context())
	if err != nil {
		return err
	}
	v := historyView{}
	for _, name := range names {
		v.Benchmarks = append(v.Benchmarks, choice{Name: plain.Clean(name), Link: "?benchmark=" + url.QueryEscape(name)})
	}
	if len(names) == 0 {
		v.Nothing = "Nothing was measured yet."
	}
	return h.page(w, r, http.StatusOK, "history", view{Title: "Histories", Content: v})
}
