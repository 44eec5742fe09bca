package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what the run found.
type report struct {
	At         time.Time `json:"at"`
	Broker     string    `json:"broker"`
	Processors int       `json:"processors"`
	Go         string    `json:"go"`
	// Load is the machine's load average of the last minute, at the start and at the end.
	Load [2]string `json:"loadAverage"`

	Router   *routerResult   `json:"router,omitempty"`
	Latency  *latencyResult  `json:"latency,omitempty"`
	Profiler *profilerResult `json:"profiler,omitempty"`
	Memory   *memoryResult   `json:"memory,omitempty"`
}

func begin(o options) *report {
	r := &report{At: time.Now().UTC(), Broker: "embedded", Processors: runtime.GOMAXPROCS(0), Go: runtime.Version()}
	if o.real {
		r.Broker = "Apache Kafka"
	}
	r.Load[0] = loadAverage()
	return r
}

func (r *report) end() { r.Load[1] = loadAverage() }

// loadAverage is empty where the system does not say.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// ratio is the median over the rounds of ours against the baseline.
func ratio(ours, plain []float64) float64 {
	rs := make([]float64, len(ours))
	for i := range ours {
		rs[i] = ours[i] / plain[i]
	}
	return median(rs)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	if n%2 == 1 {
		return list[n/2]
	}
	return (list[n/2-1] + list[n/2]) / 2
}

func met(is bool) string {
	if is {
		return "met"
	}
	return "missed"
}

func (r *report) table(out io.Writer) {
	_, _ = fmt.Fprintf(out, "broker: %s; %d processors, %s, load average %s at the start, %s at the end\n\n", r.Broker, r.Processors, r.Go, r.Load[0], r.Load[1])
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(w, "\t")
			}
			_, _ = fmt.Fprint(w, c)
		}
		_, _ = fmt.Fprintln(w)
	}
	row("what", "pointsman", "baseline", "ratio", "goal", "")
	if x := r.Router; x != nil {
		row("router, tasks/s", fmt.Sprintf("%.0f", median(x.OursPerSecond)), fmt.Sprintf("%.0f", median(x.PlainPerSec)),
			fmt.Sprintf("%.3f", x.Ratio), fmt.Sprintf("≥ %.2f", x.Goal), met(x.Ratio >= x.Goal))
		row("  with inputs kept, tasks/s", fmt.Sprintf("%.0f", median(x.OursPerSecond)), fmt.Sprintf("%.0f", median(x.WithoutInputsPerSecond)),
			fmt.Sprintf("%.3f", x.RatioInputs), "", fmt.Sprintf("%d bytes a decision, %d its input", x.DecisionBytes, x.InputBytes))
		row("  processor µs for each", fmt.Sprintf("%.0f", median(x.OursCPU)), fmt.Sprintf("%.1f", median(x.PlainCPU)), fmt.Sprintf("%.3f", x.RatioCPU), "", "")
	}
	if x := r.Latency; x != nil {
		row("submit to start p50, ms", fmt.Sprintf("%.2f", x.Ours.P50), fmt.Sprintf("%.2f", x.Plain.P50),
			fmt.Sprintf("%.2f", x.RatioP50), fmt.Sprintf("≤ %.1f", x.GoalP50), met(x.RatioP50 <= x.GoalP50))
		row("submit to start p99, ms", fmt.Sprintf("%.2f", x.Ours.P99), fmt.Sprintf("%.2f", x.Plain.P99),
			fmt.Sprintf("%.2f", x.RatioP99), fmt.Sprintf("≤ %.1f", x.GoalP99), met(x.RatioP99 <= x.GoalP99))
		row("  median of the windows' p50", "", "", fmt.Sprintf("%.2f", median(x.WindowRatiosP50)), fmt.Sprintf("≤ %.1f", x.GoalP50), met(median(x.WindowRatiosP50) <= x.GoalP50))
		row("  of it, decision seen p50, ms", fmt.Sprintf("%.2f", x.Ours.SeenP50), fmt.Sprintf("%.2f", x.Plain.SeenP50), "", "", "")
	}
	if x := r.Profiler; x != nil {
		row("profiler, rows/s", fmt.Sprintf("%.0f", median(x.OursPerSecond)), fmt.Sprintf("%.0f", median(x.RawPerSecond)),
			fmt.Sprintf("%.2f", x.Ratio), fmt.Sprintf("≥ %.2f", x.Goal), met(x.Ratio >= x.Goal))
		row("  against all tables at once", "", fmt.Sprintf("%.0f", median(x.SeveralPerSecond)), fmt.Sprintf("%.2f", x.RatioSeveral), "", "")
	}
	_ = w.Flush()
	if x := r.Memory; x != nil {
		x.table(out)
	}
}
