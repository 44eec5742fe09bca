package scaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
)

// metrics are the scaler's own. Labels come from closed lists: the configured pools, actions, layers.
type metrics struct {
	replicas, ready, open, alarm *prometheus.GaugeVec
	patches                      *prometheus.CounterVec
	patchErrors                  *prometheus.CounterVec
	wake                         *prometheus.HistogramVec
	stuck                        *prometheus.GaugeVec
	nodeSeconds                  *prometheus.CounterVec
	skipped                      *prometheus.CounterVec
	leads                        prometheus.Gauge
	lag                          prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		replicas: gauge("pointsman_scaler_replicas", "Replicas that the control plane was told; absent while it can't be read.", "cluster"),
		ready:    gauge("pointsman_scaler_ready", "1 when the pool serves, 0 when it does not; absent while nobody knows.", "cluster"),
		open:     gauge("pointsman_scaler_open_tasks", "Tasks that wait for the pool or run on it.", "cluster"),
		alarm:    gauge("pointsman_scaler_alarm", "1 when the pool is held or lowered on less evidence than it should be.", "cluster"),
		patches:  counter("pointsman_scaler_patches_total", "Patches that changed the replicas.", "cluster", "action"),
		patchErrors: counter("pointsman_scaler_patch_errors_total",
			"Tries to change the replicas that failed.", "cluster"),
		wake: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pointsman_scaler_wake_seconds", Help: "Time from the raise from zero to serve-ready.",
			Buckets: []float64{.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600},
		}, []string{"cluster"}),
		stuck: gauge("pointsman_scaler_waking_seconds", "How long the pool has been on its way up, by the layer it has not passed.", "cluster", "layer"),
		nodeSeconds: counter("pointsman_scaler_node_seconds_total",
			"Replicas times seconds, by what they were for: waking, busy or idle.", "cluster", "use"),
		skipped: counter("pointsman_scaler_skipped_records_total", "Records that could not be read, by topic and class.", "topic", "class"),
		leads:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "pointsman_scaler_leads", Help: "1 when this instance acts."}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pointsman_scaler_lag_records", Help: "Decisions that the group has not heard; unknown partitions are not in it.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.replicas, m.ready, m.open, m.alarm, m.patches, m.patchErrors, m.wake, m.stuck, m.nodeSeconds, m.skipped, m.leads, m.lag)
	}
	return m
}

// poolMetrics are those of one pool.
type poolMetrics struct {
	m           *metrics
	pool        string
	patchErrors prometheus.Counter
	wake        prometheus.Observer
	since       time.Time
}

func (m *metrics) of(pool string) *poolMetrics {
	return &poolMetrics{m: m, pool: pool, patchErrors: m.patchErrors.WithLabelValues(pool), wake: m.wake.WithLabelValues(pool)}
}

func (p *poolMetrics) patch(a capacity.Action) { p.m.patches.WithLabelValues(p.pool, string(a)).Inc() }

func (p *poolMetrics) planned(plan capacity.Plan) {
	alarm := 0.0
	if plan.Alarm {
		alarm = 1
	}
	p.m.alarm.WithLabelValues(p.pool).Set(alarm)
}

// climbed shows at which layer a waking pool is.
func (p *poolMetrics) climbed(r probe.Report, waking time.Duration) {
	stuck, isStuck := r.Stuck()
	for _, l := range probe.Layers() {
		at := 0.0
		if isStuck && stuck.Layer == l {
			at = waking.Seconds()
		}
		p.m.stuck.WithLabelValues(p.pool, string(l)).Set(at)
	}
}

// level shows how the pool stands, and counts what its replicas were for since the last time.
func (p *poolMetrics) level(o signal.Observation, open int, now time.Time) {
	ready, _ := show(p.m.ready, p.pool, o.Values[signal.Ready])
	replicas, known := show(p.m.replicas, p.pool, o.Values[signal.Replicas])
	p.m.open.WithLabelValues(p.pool).Set(float64(open))
	if known && !p.since.IsZero() {
		use := "idle"
		switch {
		case ready != 1:
			use = "waking"
		case open > 0:
			use = "busy"
		}
		p.m.nodeSeconds.WithLabelValues(p.pool, use).Add(replicas * max(0, now.Sub(p.since).Seconds()))
	}
	p.since = now
}

// show sets a gauge to a value, or takes it away: absent is not zero.
func show(g *prometheus.GaugeVec, pool string, v signal.Value) (n float64, known bool) {
	if n, known = v.Get(); known {
		g.WithLabelValues(pool).Set(n)
	} else {
		g.DeleteLabelValues(pool)
	}
	return n, known
}
