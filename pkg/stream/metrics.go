package stream

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

type consumerMetrics struct {
	assigned     prometheus.Gauge
	span         prometheus.Gauge
	pauses       prometheus.Counter
	commitErrors prometheus.Counter
	fenced       prometheus.Counter
	lost         *prometheus.CounterVec
}

func newConsumerMetrics(reg prometheus.Registerer, group string) *consumerMetrics {
	labels := prometheus.Labels{"group": group}
	gauge := func(name, help string) prometheus.Gauge {
		return register(reg, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}))
	}
	counter := func(name, help string) prometheus.Counter {
		return register(reg, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}))
	}
	return &consumerMetrics{
		assigned:     gauge("pointsman_stream_partitions", "Partitions that are ours."),
		span:         gauge("pointsman_stream_unfinished_records", "Records handed over and not finished, at the last commit."),
		pauses:       counter("pointsman_stream_pauses_total", "Times a partition was paused because too much of it was unfinished."),
		commitErrors: counter("pointsman_stream_commit_errors_total", "Partitions whose commit failed; it is tried again."),
		fenced:       counter("pointsman_stream_fenced_total", "Times another instance took our place."),
		lost: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_stream_lost_records_total", Help: "Records deleted before they were read.", ConstLabels: labels,
		}, []string{"topic"})),
	}
}

func newDeadLetterCounter(reg prometheus.Registerer) *prometheus.CounterVec {
	return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pointsman_stream_dead_letters_total", Help: "Records that could not be used, by where they lay, who gave up and why.",
	}, []string{"topic", "stage", "class"}))
}

type ledgerMetrics struct {
	takeovers *prometheus.CounterVec
	lost      *prometheus.CounterVec
	void      *prometheus.CounterVec
	readBack  *prometheus.HistogramVec
}

func newLedgerMetrics(reg prometheus.Registerer) *ledgerMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	return &ledgerMetrics{
		takeovers: counter("pointsman_ledger_takeovers_total", "Ledger partitions taken over.", "topic"),
		lost:      counter("pointsman_ledger_lost_total", "Ledger partitions lost to a newer lease.", "topic"),
		void:      counter("pointsman_ledger_void_records_total", "Own records that did not count, by reason.", "topic", "reason"),
		readBack: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pointsman_ledger_read_back_seconds", Help: "From writing a record to reading it back.",
			Buckets: []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10},
		}, []string{"topic", "kind"})),
	}
}

// polite is a registry for the metrics of one client. When a client of the same name is shown already (two services in one process, a
// client that replaces one that is not closed yet), the second is not shown: a panic would be a worse answer.
type polite struct {
	prometheus.Registerer
	mu    sync.Mutex
	shown map[prometheus.Collector]bool
}

// MustRegister implements prometheus.Registerer.
func (p *polite) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = p.Register(c)
	}
}

// Register implements prometheus.Registerer.
func (p *polite) Register(c prometheus.Collector) error {
	err := p.Registerer.Register(c)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.shown == nil {
			p.shown = map[prometheus.Collector]bool{}
		}
		p.shown[c] = true
	}
	return err
}

// Unregister takes away only what was added here: a registry goes by names, and would take the other client's away.
func (p *polite) Unregister(c prometheus.Collector) bool {
	p.mu.Lock()
	mine := p.shown[c]
	delete(p.shown, c)
	p.mu.Unlock()
	return mine && p.Registerer.Unregister(c)
}

// register adds a collector to a registry, if there is one. Two users of one name share the collector.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	if err := reg.Register(c); err != nil {
		if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			if existing, ok := already.ExistingCollector.(C); ok {
				return existing
			}
		}
	}
	return c
}
