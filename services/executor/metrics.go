package executor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor/line"
	"github.com/pointsman/pointsman/services/executor/slotlog"
)

// metrics are what the executor counts. Labels come from closed lists: states, classes, remedies, and the clusters of the
// configuration.
type metrics struct {
	attempts   *prometheus.CounterVec   // by cluster and end
	phases     *prometheus.HistogramVec // by cluster and phase
	failures   *prometheus.CounterVec   // by cluster and class
	remedies   *prometheus.CounterVec
	overruns   *prometheus.CounterVec // by cluster, class and whether it was stopped
	outcomes   *prometheus.CounterVec // by status
	submitted  *prometheus.CounterVec // by cluster
	decisions  *prometheus.CounterVec // by what became of the record
	claim      prometheus.Histogram
	asked      prometheus.Histogram
	start      prometheus.Histogram
	guards     prometheus.Counter
	takeovers  *prometheus.CounterVec // by what was found
	leasesLost prometheus.Counter
	missing    prometheus.Counter
	open       prometheus.Gauge
	partitions prometheus.Gauge
	published  *prometheus.CounterVec // by topic and result
	registry   prometheus.Registerer
}

const namespace = "pointsman_executor"

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	one := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		})
	}
	m := &metrics{
		attempts: counter("attempts_total", "Attempts that ended, by cluster and how.", "cluster", "state"),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "attempt_seconds", Help: "What ended attempts took, by cluster and phase, as far as it is known: queue, acquire, exec, deliver.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"cluster", "phase"}),
		failures:   counter("failures_total", "Failures of attempts, by cluster and class.", "cluster", "class"),
		remedies:   counter("remedies_total", "What followed failed attempts.", "remedy"),
		overruns:   counter("overruns_total", "Running attempts that were over their bounds, by cluster, class, and whether they were stopped or left for want of another place.", "cluster", "class", "action"),
		outcomes:   counter("outcomes_total", "Tasks that ended here, by status.", "status"),
		submitted:  counter("submissions_total", "Queries sent to engines.", "cluster"),
		decisions:  counter("decisions_total", "Decision records read, by what they were.", "kind"),
		claim:      seconds("claim_seconds", "Time from handing a claim to the producer to having read it back."),
		asked:      seconds("ask_seconds", "Time from asking for a slot that all executors share to having read that it is had, for those that did not wait."),
		start:      seconds("start_seconds", "Time from reading a decision to its engine's start, for attempts that did not wait."),
		guards:     one("guards_expired_total", "Submissions that did not leave because the guard of their claim had run out."),
		takeovers:  counter("takeovers_total", "Open attempts of an earlier owner, by what was found at the engine.", "found"),
		leasesLost: one("leases_lost_total", "Partitions that somebody else took while the group said they were ours."),
		missing:    one("missing_transitions_total", "Events that the attempt table has no answer to; each is a fault of the program."),
		open:       prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "open_tasks", Help: "Tasks that have no Outcome yet."}),
		partitions: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "partitions", Help: "Partitions whose ledger this process owns."}),
		published:  counter("events_total", "Events written, by topic and result.", "topic", "result"),
		registry:   reg,
	}
	if reg != nil {
		reg.MustRegister(m.attempts, m.phases, m.failures, m.remedies, m.overruns, m.outcomes, m.submitted, m.decisions, m.claim, m.asked, m.start, m.guards,
			m.takeovers, m.leasesLost, m.missing, m.open, m.partitions, m.published)
	}
	return m
}

// label is the attempt's cluster as a metric label: a decision may name any, and labels come from the configuration.
func (y *try) label() string {
	if y.cluster == nil {
		return "unknown"
	}
	return y.cluster.cfg.Name
}

// ended counts an attempt that has ended, and what it took.
func (m *metrics) ended(cluster, state string, s event.Stats) {
	m.attempts.WithLabelValues(cluster, state).Inc()
	for _, p := range []struct {
		name string
		ms   *int64
	}{{"queue", s.QueueMs}, {"acquire", s.AcquireMs}, {"exec", s.ExecMs}, {"deliver", s.DeliverMs}} {
		if p.ms != nil {
			m.phases.WithLabelValues(cluster, p.name).Observe(float64(*p.ms) / 1000)
		}
	}
}

// line exports the load of one cluster's line.
func (m *metrics) line(cluster string, l *line.Line, shared *slotlog.Log) {
	if m.registry == nil {
		return
	}
	gauge := func(name, help string, pick func(slots, used, waiting int) int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: name, Help: help, ConstLabels: prometheus.Labels{"cluster": cluster},
		}, func() float64 { return float64(pick(l.Load())) }))
	}
	gauge("slots", "Slots of a cluster in this process.", func(slots, _, _ int) int { return slots })
	gauge("slots_used", "Slots taken.", func(_, used, _ int) int { return used })
	gauge("line_length", "Attempts that wait for a slot.", func(_, _, waiting int) int { return waiting })
	gauge("shared_slots_used", "Slots taken by all executors together, of attempts that a cap applies to.", func(_, _, _ int) int { return shared.Held(cluster) })
}
