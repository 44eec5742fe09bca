package intake

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/intake/board"
)

// metrics are the intake's own. Labels come from closed lists: routes, codes, kinds of a take.
type metrics struct {
	requests *prometheus.HistogramVec
	problems *prometheus.CounterVec
	taken    *prometheus.CounterVec
	produce  prometheus.Histogram
	waiting  prometheus.Gauge
}

// Kinds of a request that was taken in.
const (
	takenNew    = "new"
	takenRepeat = "repeat"
)

func newMetrics(reg prometheus.Registerer, b *board.Board) *metrics {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pointsman_intake_request_seconds", Help: "Time to answer an HTTP request, by route and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "status"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_intake_problems_total", Help: "Requests answered with a problem, by its code.",
		}, []string{"code"}),
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_intake_tasks_taken_total", Help: "Tasks taken in, new ones and repeats of known ones.",
		}, []string{"kind"}),
		produce: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_intake_produce_seconds", Help: "Time until the broker has acknowledged a request.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pointsman_intake_waiting_requests", Help: "Requests that wait for an outcome or follow events.",
		}),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.requests, m.problems, m.taken, m.produce, m.waiting)
	gauge := func(name, help string, read func(board.Stats) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(b.Stats()) }))
	}
	counter := func(name, help string, read func(board.Stats) float64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return read(b.Stats()) }))
	}
	gauge("pointsman_intake_board_tasks", "Tasks that are kept.", func(s board.Stats) float64 { return float64(s.Tasks) })
	gauge("pointsman_intake_board_bytes", "Memory for tasks, as the JSON of their events.", func(s board.Stats) float64 { return float64(s.Bytes) })
	counter("pointsman_intake_board_evicted_by_space_total", "Tasks let go to keep the memory bounded.", func(s board.Stats) float64 { return float64(s.EvictedBySpace) })
	counter("pointsman_intake_board_evicted_by_age_total", "Tasks let go because they were old.", func(s board.Stats) float64 { return float64(s.EvictedByAge) })
	counter("pointsman_intake_board_conflicts_total", "Requests read under the id of another one.", func(s board.Stats) float64 { return float64(s.Conflicts) })
	return m
}

func (m *metrics) served(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

// readerMetrics are those of reading the topics.
type readerMetrics struct{ skipped *prometheus.CounterVec }

func newReaderMetrics(reg prometheus.Registerer) *readerMetrics {
	m := &readerMetrics{skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pointsman_intake_skipped_records_total", Help: "Records that could not be read, by topic and class.",
	}, []string{"topic", "class"})}
	if reg != nil {
		reg.MustRegister(m.skipped)
	}
	return m
}

func (m *readerMetrics) skip(topic string, class stream.FaultClass) {
	m.skipped.WithLabelValues(topic, string(class)).Inc()
}
