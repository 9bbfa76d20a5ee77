package work

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"patchbench/bot/eval"
	"patchbench/bot/letter"
	"patchbench/bot/watch/command"
	"patchbench/bot/work/mirror"
	"patchbench/bot/workfolder"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// place makes the folder for checkouts and builds.
func (j *job) place(o *eval.Options) (remove func(), err error) {
	w, err := workfolder.New(j.slot.Folder)
	if err != nil {
		return nil, err
	}
	o.WorkDir = w.Work
	o.Fixtures = filepath.Join(filepath.Dir(j.slot.Folder), "fixtures-"+strconv.Itoa(os.Geteuid()))
	if err := w.Admit(o.Sandbox.RunsAs()); err != nil {
		w.Remove()
		return nil, err
	}
	return w.Remove, nil
}

// fetched brings the project's repository up to date, if that is wanted.
func fetched(ctx context.Context, p *service.Project) error {
	if p.Remote == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	err := mirror.Fetch(ctx, p.Repo, p.Remote)
	if errors.Is(err, mirror.ErrNotBare) {
		return &finalError{err}
	}
	return err
}

// only matches the benchmarks with these names, with all their parameters; nil for
// no names.
func only(names []string) *regexp.Regexp {
	if len(names) == 0 {
		return nil
	}
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, regexp.QuoteMeta(n))
	}
	return regexp.MustCompile(`^(?:` + strings.Join(quoted, "|") + `)(?:\{|$)`)
}

// again is how somebody else evaluates the same: with the paths that he has.
func (j *job) again(what string, o *eval.Options, base mbox.Base) string {
	project := j.project
	words := []string{"bot", "eval", what, "--repo", project.Name}
	if base.Commit != "" && what == mailFile {
		words = append(words, "--base", brief(base.Commit))
	}
	if project.Suite != "" {
		words = append(words, "--suite", filepath.Base(project.Suite))
	}
	if o.Benchmarks != nil {
		words = append(words, "--benchmarks", "'"+o.Benchmarks.String()+"'")
	}
	if project.Budget > 0 {
		words = append(words, "--budget", project.Budget.String())
	}
	if project.Margin > 0 && project.Margin != 0.01 {
		words = append(words, "--margin", strconv.FormatFloat(project.Margin*100, 'g', 6, 64))
	}
	return strings.Join(append(words, "--seed", strconv.FormatUint(o.Seed, 10)), " ")
}

// brief is a commit as people write it.
func brief(commit string) string { return commit[:min(12, len(commit))] }

// mailFile stands for the series in a command line.
const mailFile = "series.mbox"

// mail is a series from a list.
type mail struct {
	*job
	p store.MailPayload
}

func (m *mail) input(ctx context.Context, o *eval.Options) (eval.Input, error) {
	if err := fetched(ctx, m.project); err != nil {
		return eval.Input{}, err
	}
	o.Base, o.Branch = m.p.Base, cmp.Or(m.p.Branch, m.project.Branch)
	o.Benchmarks = only(m.p.Benchmarks)
	o.Command = func(base mbox.Base) string { return m.again(mailFile, o, base) }
	return eval.Input{Series: &m.p.Series, AtHand: m.p.AtHand}, nil
}

// answer writes the letter, which waits in the outbox for its mode to allow it.
func (m *mail) answer(ctx context.Context, e *store.Evaluation, out *outcome) error {
	before, err := m.before(ctx)
	if err != nil {
		return err
	}
	c := m.cfg
	o := letter.Options{Secret: m.o.Secret, AutoSubmitted: c.Policy.AutoSubmitted, Key: m.letterKey(), Now: m.o.Now(),
		From: mbox.Address{Name: "Patchbench", Email: "patchbench@localhost"}} // a dry run needs no way out
	if c.SMTP != nil {
		o.From = c.SMTP.From
	}
	if c.Web != nil && c.Web.URL != "" {
		o.URL = c.Web.URL + "/evaluations/" + e.ID
	}
	l, err := letter.Compose(e, before, m.p, o)
	switch {
	case errors.Is(err, letter.ErrRefused):
		out.why += "; not answered: " + err.Error()
		return nil
	case err != nil:
		return err
	case l == nil:
		out.why += "; not answered: there is nothing that the list wants to be told"
		return nil
	}
	l.Task = m.task.ID
	out.letters = []store.Letter{*l}
	return nil
}

// letterKey is what the letter is known by, and its Message-ID follows from. The
// task of a series has the key of the part that was there when it was first decided;
// the letter must not depend on that, for another decision, after a backup was
// restored, must find what was sent.
func (m *mail) letterKey() string {
	if strings.HasPrefix(m.task.Key, "mail:") {
		return "mail:" + m.p.Thread.MessageID
	}
	return m.task.Key // an order's, whose mail may have several
}

// before gives the evaluation of the version before, nil if there is none.
func (m *mail) before(ctx context.Context) (*store.Evaluation, error) {
	if m.p.Previous == "" {
		return nil, nil
	}
	t, err := m.st.TaskByKey(ctx, m.p.Previous)
	if errors.Is(err, store.ErrNoTask) || err == nil && (t.State != store.Done || t.Evaluation == "") {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	e, err := m.st.Evaluation(ctx, t.Evaluation)
	var none *store.IDError
	if errors.As(err, &none) {
		return nil, nil
	}
	return e, err
}

// failed is told to nobody, since it is ours; unless somebody has asked for a base or
// for benchmarks that there are not.
func (m *mail) failed(err error, out *outcome) {
	var input *eval.InputError
	var repo *tree.InputError
	asked := strings.HasPrefix(m.task.Key, "run:") && (m.p.Base != "" || len(m.p.Benchmarks) > 0)
	if !asked || m.cfg.SMTP == nil || !errors.As(err, &input) && !errors.As(err, &repo) {
		return
	}
	line := command.Line{Verb: command.Run, Args: strings.Join(m.p.Benchmarks, " ")}
	if m.p.Base != "" {
		line.Args = strings.TrimSpace(line.Args + " base " + m.p.Base)
	}
	fault := letter.Fault{Line: line.String(), Why: m.outside(err.Error())}
	o := letter.Options{From: m.cfg.SMTP.From, Secret: m.o.Secret, AutoSubmitted: m.cfg.Policy.AutoSubmitted, Key: "told:" + m.task.Key, Now: m.o.Now()}
	l, err := letter.Faults([]letter.Fault{fault}, command.Usage(nil), m.p.Thread, m.p.Mode, o)
	if err != nil {
		out.why += "; not answered: " + err.Error()
		return
	}
	l.Task = m.task.ID
	out.letters = []store.Letter{*l}
}

// outside is a text for people who know the project, and neither this machine's
// folders nor how benchmarks are chosen by their names.
func (m *mail) outside(text string) string {
	for _, c := range [][2]string{{m.project.Suite, filepath.Base(m.project.Suite)}, {m.project.Repo, m.project.Name}} {
		if c[0] != "" {
			text = strings.ReplaceAll(text, c[0], c[1])
		}
	}
	if r := only(m.p.Benchmarks); r != nil {
		text = strings.ReplaceAll(text, strconv.Quote(r.String()), strings.Join(m.p.Benchmarks, " or "))
	}
	return text
}

func (m *mail) running(context.Context, string) {}

// pull is a pull request.
type pull struct {
	*job
	p    store.PullPayload
	told time.Time
}

func (p *pull) input(ctx context.Context, o *eval.Options) (in eval.Input, err error) {
	o.Repo, in.From, in.To, err = p.o.Pulls.Prepare(ctx, p.p)
	if err != nil {
		return in, err
	}
	o.Benchmarks = only(p.p.Benchmarks)
	o.Command = func(base mbox.Base) string {
		return p.again(brief(in.From)+".."+brief(in.To), o, base)
	}
	return in, nil
}

func (p *pull) answer(_ context.Context, e *store.Evaluation, out *outcome) (err error) {
	out.notice, err = p.o.Pulls.Render(e, p.p)
	return err
}

func (p *pull) failed(err error, out *outcome) { out.notice = p.o.Pulls.Failed(p.p, err.Error()) }

// running tells the beginning, and then once a minute: a forge counts requests.
func (p *pull) running(ctx context.Context, text string) {
	now := p.Worker.o.Now()
	if text != "" && now.Sub(p.told) < time.Minute {
		return
	}
	p.told = now
	n := p.o.Pulls.Running(p.p, text)
	if n == nil {
		return
	}
	if err := p.st.PutNotice(ctx, *n); err != nil && ctx.Err() == nil {
		p.log.Warn("progress could not be noted", "err", err)
	}
}
