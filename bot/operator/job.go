package operator

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"patchbench/bot/report/plain"
	"patchbench/store"
)

// Job is a task as scripts read it.
type Job struct {
	ID         int64      `json:"id"`
	Key        string     `json:"key"`
	Kind       string     `json:"kind"`
	Project    string     `json:"project"`
	Class      string     `json:"class"`
	List       string     `json:"list,omitempty"`
	Ref        string     `json:"ref"`
	Title      string     `json:"title"`
	Author     Author     `json:"author"`
	Version    int        `json:"version,omitempty"`
	State      string     `json:"state"`
	Reason     string     `json:"reason,omitempty"`
	Created    time.Time  `json:"created"`
	Started    *time.Time `json:"started,omitempty"`
	Ended      *time.Time `json:"ended,omitempty"`
	Worker     string     `json:"worker,omitempty"`
	Attempts   int        `json:"attempts"`
	Progress   string     `json:"progress,omitempty"`
	Evaluation string     `json:"evaluation,omitempty"`
	Supersedes string     `json:"supersedes,omitempty"`
}

// Author is who sent a series or opened a pull request.
type Author struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// JobOf is a task for scripts.
func JobOf(k *store.Task) Job {
	return Job{ID: k.ID, Key: k.Key, Kind: k.Kind, Project: k.Project, Class: k.Class, List: k.List, Ref: k.Ref, Title: k.Title,
		Author: Author{k.Author.Name, k.Author.Email}, Version: k.Version, State: string(k.State), Reason: k.Reason,
		Created: k.Created.UTC(), Started: utc(k.Started), Ended: utc(k.Ended), Worker: k.Worker, Attempts: k.Attempts,
		Progress: k.Progress, Evaluation: k.Evaluation, Supersedes: k.Supersedes}
}

// JobLine is a task in a list of them.
func JobLine(k *store.Task) string {
	line := fmt.Sprintf("%d  %s  %s  %s  %s", k.ID, k.State, k.Created.UTC().Format("2006-01-02 15:04"), k.Project, k.Title)
	if k.State == store.Running && k.Progress != "" {
		line += ": " + k.Progress
	} else if k.Reason != "" {
		line += ": " + k.Reason
	}
	return plain.Clean(line)
}

// JobText shows a task to people, a line for each of what is known of it.
func JobText(w io.Writer, k *store.Task) error {
	c := card{width: 11}
	c.line("job", fmt.Sprint(k.ID))
	c.line("state", string(k.State))
	c.line("reason", k.Reason)
	c.line("progress", k.Progress)
	c.line("title", k.Title)
	c.line("author", strings.TrimSpace(k.Author.Name+" <"+cmp.Or(k.Author.Email, "-")+">"))
	c.line("project", k.Project)
	c.line("class", k.Class)
	c.line("list", k.List)
	c.line("ref", k.Ref)
	c.line("key", k.Key)
	c.line("supersedes", k.Supersedes)
	c.at("created", k.Created)
	c.at("started", k.Started)
	c.at("ended", k.Ended)
	c.line("worker", k.Worker)
	if k.Attempts > 0 {
		c.line("attempts", fmt.Sprint(k.Attempts))
	}
	c.line("evaluation", k.Evaluation)
	_, err := io.WriteString(w, c.String())
	return err
}
