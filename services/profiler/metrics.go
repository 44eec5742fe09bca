package profiler

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	stored        *prometheus.CounterVec
	clamped       *prometheus.CounterVec
	faults        *prometheus.CounterVec
	insertErrors  *prometheus.CounterVec
	insertSeconds *prometheus.HistogramVec
	insertRows    prometheus.Histogram
	held          prometheus.Gauge
	rollupSeconds prometheus.Histogram
	rollupErrors  prometheus.Counter
	rolledUpAt    prometheus.Gauge
	signals       *prometheus.CounterVec
	signalErrors  *prometheus.CounterVec
	observeErrors *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		stored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_rows_total", Help: "Rows that the history has acknowledged.",
		}, []string{"table"}),
		clamped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_clamped_rows_total", Help: "Rows with a time that could not be true.",
		}, []string{"table"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_unusable_records_total", Help: "Records without a row: dead-lettered here, or left to the service that acts on them.",
		},
			[]string{"topic", "class", "left_to_others"}),
		insertErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_insert_errors_total", Help: "Tries of an insert that failed.",
		}, []string{"kind"}),
		insertSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pointsman_profiler_insert_seconds", Help: "Time of an insert that succeeded.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 12),
		}, []string{"table"}),
		insertRows: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_profiler_insert_rows", Help: "Rows of an insert.", Buckets: prometheus.ExponentialBuckets(1, 4, 9),
		}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pointsman_profiler_held_bytes", Help: "Records in memory that are not stored yet.",
		}),
		rollupSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_profiler_rollup_seconds", Help: "Time of a recompute.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
		}),
		rollupErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pointsman_profiler_rollup_errors_total", Help: "Recomputes that failed; they are tried again.",
		}),
		rolledUpAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pointsman_profiler_rollups_fresh_timestamp_seconds", Help: "When no hour was dirty last.",
		}),
		signals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_signals_total", Help: "Signals published.",
		}, []string{"source"}),
		signalErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_signal_errors_total", Help: "Signals that could not be published; the next one takes their place.",
		}, []string{"source"}),
		observeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_profiler_observe_errors_total", Help: "Engines that did not answer, or failed their canary.",
		}, []string{"cluster"}),
	}
	if reg != nil {
		reg.MustRegister(m.stored, m.clamped, m.faults, m.insertErrors, m.insertSeconds, m.insertRows, m.held, m.rollupSeconds, m.rollupErrors,
			m.rolledUpAt, m.signals, m.signalErrors, m.observeErrors)
	}
	return m
}
