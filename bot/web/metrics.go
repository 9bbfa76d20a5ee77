package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"patchbench/bot/part"
	"patchbench/bot/report/plain"
	"patchbench/mbox/source/imap"
	"patchbench/store"
)

// metrics serves the numbers of the record, read anew for each answer, and those
// of this process.
func (h *handler) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{h}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            logger{h},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 2,
		Timeout:             patience,
	})
}

// logger takes what promhttp has to say of an answer that could not be given.
type logger struct{ h *handler }

func (l logger) Println(v ...any) { l.h.log.Error("metrics", "error", v) }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("patchbench_"+name, help, labels, nil)
}

var (
	storeUp         = desc("store_up", "1 if the record can be read.")
	tasksByState    = desc("jobs", "Jobs by state.", "state")
	lettersByState  = desc("letters", "Letters of the outbox by state.", "state")
	noticesDue      = desc("notices_due", "Pull requests whose comment is not yet as it should be.")
	mailsTaken      = desc("mails_total", "Mails ever taken in.")
	mailsKept       = desc("mails", "Mails kept, by source.", "source")
	mailsAside      = desc("mails_set_aside", "Mails that a server has and does not give, by source.", "source")
	mailLast        = desc("last_mail_timestamp_seconds", "When the last mail was received, by source.", "source")
	evaluations     = desc("evaluations", "Evaluations kept, by verdict.", "verdict")
	evaluationBuild = desc("evaluation_build_seconds", "Wall time of the builds of evaluations.")
	evaluationTime  = desc("evaluation_measure_seconds", "Wall time of the measuring of evaluations.")
	queuedSince     = desc("oldest_queued_timestamp_seconds", "Since when the oldest queued job waits, 0 if none does.")
	leasesLapsed    = desc("lapsed_leases", "Running tasks whose worker is not heard of any more.")
	mailFates       = desc("mail_outcomes_total", "Mails of which nothing was made, and decisions, since this process started.", "outcome")
	partUp          = desc("part_up", "1 if a part of this process runs.", "part")
)

var letterStates = []store.LetterState{
	store.LetterHeld, store.LetterQueued, store.LetterSending, store.LetterSent, store.LetterFailed, store.LetterUnknown, store.LetterDropped,
}

// label makes a name fit for a metric's label.
func label(s string) string { return plain.Clean(s) }

// once leaves one part of each name: the one that does not run, if there is one.
func once(all []part.Status) (out []part.Status) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(o part.Status) bool { return o.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, p)
		case out[i].Err == nil:
			out[i] = p
		}
	}
	return out
}

// collector reads the record when it is asked.
type collector struct{ h *handler }

// Describe names nothing beforehand: which labels there are is known when the
// record is read.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the record.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, p := range once(c.h.parts()) {
		up := 1.0
		if p.Err != nil {
			up = 0
		}
		gauge(partUp, up, label(p.Name))
	}
	for outcome, n := range c.h.mails() {
		ch <- prometheus.MustNewConstMetric(mailFates, prometheus.CounterValue, float64(n), label(outcome))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o, err := c.h.store.Overview(ctx, c.h.now())
	if err != nil {
		c.h.log.Error("metrics", "error", err)
		gauge(storeUp, 0)
		return
	}
	gauge(storeUp, 1)
	for _, s := range order {
		gauge(tasksByState, float64(o.Tasks[s.state]), string(s.state))
	}
	for _, s := range letterStates {
		gauge(lettersByState, float64(o.Letters[s]), string(s))
	}
	gauge(noticesDue, float64(o.Notices))
	ch <- prometheus.MustNewConstMetric(mailsTaken, prometheus.CounterValue, float64(o.Mails))
	for _, s := range o.Sources {
		gauge(mailsKept, float64(s.Mails), label(s.Name))
		if aside, err := imap.SetAside(s.Cursor); err == nil { // else it is none of an IMAP folder
			gauge(mailsAside, float64(len(aside)), label(s.Name))
		}
		if !s.Last.IsZero() {
			gauge(mailLast, float64(s.Last.UnixMilli())/1000, label(s.Name))
		}
	}
	total := uint64(0)
	for _, n := range o.Evaluations {
		total += uint64(n)
	}
	for _, w := range words {
		gauge(evaluations, float64(o.Evaluations[w.verdict]), string(w.verdict))
	}
	ch <- prometheus.MustNewConstSummary(evaluationBuild, total, o.BuildTime.Seconds(), nil)
	ch <- prometheus.MustNewConstSummary(evaluationTime, total, o.MeasureTime.Seconds(), nil)
	since := 0.0
	if !o.Queued.IsZero() {
		since = float64(o.Queued.Unix())
	}
	gauge(queuedSince, since)
	gauge(leasesLapsed, float64(len(o.Lapsed)))
}
