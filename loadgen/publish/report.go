package publish

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report says what was sent and how punctually. Lateness is from the time a record was due to the time it was handed to
// the client; Acknowledged is from the time it was due to the broker's acknowledgement. Both count from the due time, so
// that a stall is not hidden by what it kept from being sent.
type Report struct {
	Sent         int64     `json:"sent"`
	Failed       int64     `json:"failed"`
	Unanswered   int64     `json:"unanswered"`
	Seconds      float64   `json:"seconds"`
	Rate         float64   `json:"rate"`
	Lateness     Quantiles `json:"latenessMs"`
	Acknowledged Quantiles `json:"acknowledgedMs"`
}

// Quantiles are milliseconds over Samples records; all zero without a sample.
type Quantiles struct {
	Samples int64   `json:"samples"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// String is the report for people.
func (r Report) String() string {
	return fmt.Sprintf("sent %d in %.1f s (%.1f/s), failed %d, unanswered %d\nlateness      %s\nacknowledged  %s",
		r.Sent, r.Seconds, r.Rate, r.Failed, r.Unanswered, r.Lateness, r.Acknowledged)
}

// String is one line.
func (q Quantiles) String() string {
	if q.Samples == 0 {
		return "no samples"
	}
	return fmt.Sprintf("p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, max %.3f ms (n=%d)", q.P50, q.P90, q.P99, q.Max, q.Samples)
}

// tally collects. Histograms hold microseconds up to ten minutes with three digits.
type tally struct {
	sent, answered, failed int64
	late, acked            *hdrhistogram.Histogram
}

const longest = 10 * time.Minute

func newTally() *tally {
	return &tally{late: hdrhistogram.New(1, longest.Microseconds(), 3), acked: hdrhistogram.New(1, longest.Microseconds(), 3)}
}

func (t *tally) sending(late time.Duration) {
	t.sent++
	record(t.late, late)
}

func (t *tally) acknowledged(after time.Duration, err error) {
	t.answered++
	if err != nil {
		t.failed++
		return
	}
	record(t.acked, after)
}

// record clamps: a value beyond the histogram's range would be refused, and so be missing where it matters most.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d, 0), longest).Microseconds())
}

func (t *tally) report(took time.Duration) Report {
	r := Report{
		Sent: t.sent, Failed: t.failed, Unanswered: t.sent - t.answered, Seconds: took.Seconds(),
		Lateness: quantiles(t.late), Acknowledged: quantiles(t.acked),
	}
	if took > 0 {
		r.Rate = float64(t.sent) / took.Seconds()
	}
	return r
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Quantiles{
		Samples: h.TotalCount(), P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)), Max: ms(h.Max()),
	}
}
