package githubtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Repo is a repository with its pull requests.
type Repo struct {
	Name string // owner/name
	ID   int64
	Git  *Git

	s       *Server
	rights  map[string]string // by login: admin, write, read
	pulls   map[int]*Pull
	checks  []*Check
	comment map[int64]*Comment
	away    bool // the App is not installed
}

// Pull is a pull request.
type Pull struct {
	Number int

	r                    *Repo
	title, author        string
	state                string
	merged, locked, gone bool
	head, base, baseRef  string
	fork                 *fork // nil: the branch is in the repository
	labels               []string
	events               []event
	updated              time.Time
}

// fork is where a pull request's branch is.
type fork struct {
	id     int64
	owner  string
	pushed time.Time
	gone   bool
}

type event struct {
	kind, actor, label string
	at                 time.Time
}

// Comment is a comment at a pull request.
type Comment struct {
	ID      int64
	Number  int
	Login   string
	Body    string
	Created time.Time
	Updated time.Time
	Edits   int
}

// Check is a check run.
type Check struct {
	ID         int64
	Name       string    `json:"name"`
	HeadSHA    string    `json:"head_sha"`
	Status     string    `json:"status"`
	Conclusion string    `json:"conclusion"`
	ExternalID string    `json:"external_id"`
	DetailsURL string    `json:"details_url"`
	Completed  time.Time `json:"completed_at,omitzero"`
	Output     struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Text    string `json:"text"`
	} `json:"output"`
}

// Repo makes a repository with one commit on main.
func (s *Server) Repo(name string) *Repo {
	r := &Repo{Name: name, s: s, rights: map[string]string{}, pulls: map[int]*Pull{}, comment: map[int64]*Comment{}, Git: newGit(s.t)}
	r.Git.Branch("main", r.Git.Commit(map[string]string{"README": "one\n"}, "begin"))
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ID = s.id()
	s.repos[strings.ToLower(name)] = r
	return r
}

// Allow gives somebody a right: admin, write or read.
func (r *Repo) Allow(login, right string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.rights[login] = right
}

// Install says whether the App is installed on the repository.
func (r *Repo) Install(is bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.away = !is
}

// Open opens a pull request from a fork, whose head is a commit of the
// repository's objects.
func (r *Repo) Open(author, title, head string) *Pull {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	p := &Pull{
		Number: len(r.pulls) + 1, r: r, title: title, author: author, state: "open", head: head,
		base: r.Git.Tip("main"), baseRef: "main", fork: &fork{id: r.s.id(), owner: author, pushed: r.s.now}, updated: r.s.now,
	}
	r.pulls[p.Number] = p
	r.Git.Pull(p.Number, head)
	return p
}

// At gives a pull request, nil if there is none of that number.
func (r *Repo) At(number int) *Pull {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.pulls[number]
}

// change does f, at a new second of the server's clock.
func (p *Pull) change(f func()) {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	p.r.s.now = p.r.s.now.Add(time.Second)
	f()
	p.updated = p.r.s.now
}

// Head is the pull request's head.
func (p *Pull) Head() string {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	return p.head
}

// Vanish takes the pull request away, as with an owner who is locked out.
func (p *Pull) Vanish() { p.change(func() { p.gone = true }) }

// Push makes head the pull request's head.
func (p *Pull) Push(head string) {
	p.change(func() {
		p.head = head
		if p.fork != nil {
			p.fork.pushed = p.r.s.now
		}
		p.r.Git.Pull(p.Number, head)
	})
}

// Label puts a label on; it is taken off before if it is there.
func (p *Pull) Label(who, label string) {
	p.change(func() {
		p.labels = append(slices.DeleteFunc(p.labels, func(l string) bool { return l == label }), label)
		p.events = append(p.events, event{"labeled", who, label, p.r.s.now})
	})
}

// Close closes the pull request, or merges it.
func (p *Pull) Close(merged bool) { p.change(func() { p.state, p.merged = "closed", merged }) }

// Reopen opens it again.
func (p *Pull) Reopen() { p.change(func() { p.state = "open" }) }

// Lock locks the conversation.
func (p *Pull) Lock() { p.change(func() { p.locked = true }) }

// DropFork deletes the fork that the branch was in.
func (p *Pull) DropFork() { p.change(func() { p.fork.gone = true }) }

// From makes the branch one of somebody else's fork.
func (p *Pull) From(owner string) { p.change(func() { p.fork.owner = owner }) }

// Own makes the branch one of the repository itself.
func (p *Pull) Own() { p.change(func() { p.fork = nil }) }

// Renamed says that the base branch has another name.
func (p *Pull) Renamed(branch string) { p.change(func() { p.baseRef = branch }) }

// Base makes another branch the base.
func (p *Pull) Base(who, branch string) {
	p.change(func() {
		p.base, p.baseRef = p.r.Git.Tip(branch), branch
		p.events = append(p.events, event{kind: "base_ref_changed", actor: who, at: p.r.s.now})
	})
}

// Say writes a comment.
func (p *Pull) Say(login, body string) *Comment {
	var c *Comment
	p.change(func() {
		c = &Comment{ID: p.r.s.id(), Number: p.Number, Login: login, Body: body, Created: p.r.s.now, Updated: p.r.s.now}
		p.r.comment[c.ID] = c
	})
	return c
}

// Edit makes a comment say something else.
func (r *Repo) Edit(id int64, body string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	c := r.comment[id]
	c.Body, c.Updated = body, r.s.now
}

// Delete deletes a comment.
func (r *Repo) Delete(id int64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	delete(r.comment, id)
}

// Comments are those of a login at the pull request, the oldest first.
func (p *Pull) Comments(login string) []Comment {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	var list []Comment
	for _, c := range p.r.comment {
		if c.Number == p.Number && c.Login == login {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, func(a, b Comment) int { return int(a.ID - b.ID) })
	return list
}

// Checks are the check runs of a commit, the oldest first.
func (r *Repo) Checks(head string) []Check {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var list []Check
	for _, c := range r.checks {
		if c.HeadSHA == head {
			list = append(list, *c)
		}
	}
	return list
}

// Changed is the payload of a pull_request event, as it stands now.
func (p *Pull) Changed(action string) any {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	return map[string]any{
		"action": action, "number": p.Number, "pull_request": p.json(), "repository": p.r.json(), "sender": user(p.author),
	}
}

// Said is the payload of an issue_comment event.
func (p *Pull) Said(c *Comment) any {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	return map[string]any{
		"action": "created", "repository": p.r.json(), "sender": user(c.Login), "comment": p.r.commentJSON(c),
		"issue": map[string]any{"number": p.Number, "pull_request": map[string]any{"url": "x"}},
	}
}

// RerequestedAll is the payload of a check_suite event.
func (p *Pull) RerequestedAll(login string, c Check) any {
	e := p.Rerequested(login, c).(map[string]any)
	e["check_suite"] = e["check_run"]
	delete(e, "check_run")
	return e
}

// Rerequested is the payload of a check_run event.
func (p *Pull) Rerequested(login string, c Check) any {
	p.r.s.mu.Lock()
	defer p.r.s.mu.Unlock()
	pulls := []any{} // empty for forks
	if p.fork == nil {
		pulls = append(pulls, map[string]any{"number": p.Number})
	}
	return map[string]any{
		"action": "rerequested", "repository": p.r.json(), "sender": user(login),
		"check_run": map[string]any{"id": c.ID, "head_sha": c.HeadSHA, "app": map[string]any{"id": p.r.s.AppID}, "pull_requests": pulls},
	}
}

func user(login string) any {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return map[string]any{"login": login, "type": kind}
}

func (r *Repo) json() map[string]any {
	owner, _, _ := strings.Cut(r.Name, "/")
	return map[string]any{"id": r.ID, "full_name": r.Name, "owner": user(owner), "pushed_at": r.s.now}
}

func (p *Pull) json() map[string]any {
	labels := []any{}
	for _, l := range p.labels {
		labels = append(labels, map[string]any{"name": l})
	}
	var from any = p.r.json()
	owner, _, _ := strings.Cut(p.r.Name, "/")
	if p.fork != nil {
		owner = p.fork.owner
		from = map[string]any{"id": p.fork.id, "full_name": owner + "/fork", "owner": user(owner), "pushed_at": p.fork.pushed}
		if p.fork.gone {
			from = nil
		}
	}
	return map[string]any{
		"number": p.Number, "state": p.state, "title": p.title, "user": user(p.author), "labels": labels, "merged": p.merged,
		"updated_at": p.updated, "html_url": fmt.Sprintf("%s/%s/pull/%d", p.r.s.URL, p.r.Name, p.Number),
		"head": map[string]any{"sha": p.head, "ref": "--upload-pack=touch /tmp/p", "user": user(owner), "repo": from},
		"base": map[string]any{"sha": p.base, "ref": p.baseRef, "repo": p.r.json()},
	}
}

func (r *Repo) commentJSON(c *Comment) any {
	return map[string]any{
		"id": c.ID, "body": c.Body, "user": user(c.Login), "created_at": c.Created, "updated_at": c.Updated,
		"issue_url": fmt.Sprintf("%s/api/v3/repos/%s/issues/%d", r.s.URL, r.Name, c.Number),
	}
}

// json is the check run as the API shows it.
func (c *Check) json() any {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		panic(err)
	}
	m["id"] = c.ID
	return m
}
