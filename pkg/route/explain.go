package route

import (
	"fmt"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Explain tells a decision in words. It reads nothing but the decision, so a decision from last week explains itself.
func Explain(d event.RouteDecision) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch d.Kind {
	case event.Reject:
		line("Task %s is rejected.", d.TaskID)
		if d.Rejection != nil {
			line("  %s", d.Rejection.Message)
			if s := d.Rejection.RetryAfterSeconds; s != nil {
				line("  Try again after %d s.", *s)
			}
		}
	case event.PassCancel:
		line("Task %s is to be cancelled.", d.TaskID)
		return b.String()
	default:
		line("Task %s, attempt %d, goes to %s (%s), queue %s, resources %s.", d.TaskID, d.Attempt, d.Cluster, d.Engine, d.Queue, d.Resource)
		for _, r := range d.Reasons {
			line("  because %s [%s]", r.Text, r.Code)
		}
	}
	if d.Rule != "" {
		line("Rule: %s (policy %s). Verdict: %s.", d.Rule, d.PolicyHash, orUnknown(d.Verdict))
	}
	line("Query: fingerprint %s, %s, tables %s, scan %s.", orUnknown(d.Fingerprint), orUnknown(d.Statement),
		orUnknown(strings.Join(d.Tables, ", ")), d.Estimates[ScanBytes])
	if len(d.Candidates) > 0 {
		line("Candidates:")
	}
	for _, c := range d.Candidates {
		explainCandidate(line, c)
	}
	for _, c := range d.Candidates {
		explainSignals(line, d, c.Cluster)
	}
	if len(d.Unknown) > 0 {
		line("Not known when it was decided: %s.", strings.Join(d.Unknown, "; "))
	}
	if len(d.Fallbacks) > 0 {
		names := make([]string, len(d.Fallbacks))
		for i, f := range d.Fallbacks {
			names[i] = f.Cluster
		}
		line("If it fails there: %s.", strings.Join(names, ", then "))
	}
	return b.String()
}

func explainCandidate(line func(string, ...any), c event.Candidate) {
	if c.Filtered != nil {
		help := ""
		if c.Filtered.WaitHelps {
			help = " (waiting helps)"
		}
		line("  -  %s: %s%s [%s]", c.Cluster, c.Filtered.Text, help, c.Filtered.Code)
		return
	}
	if c.Estimate == nil {
		return
	}
	e := c.Estimate
	basis := "no history there, from the pool's start-up time and scan rate"
	if e.Evidence.N > 0 {
		basis = fmt.Sprintf("from %d runs in %s", e.Evidence.N, e.Evidence.Window)
	}
	line("  %d. %s: queue %s + start %s + run %s, in time with %s (%s)", c.Rank, c.Cluster, e.QueueMs, e.AcquireMs, e.ExecMs,
		percentOf(e.PHit), basis)
	if c.LostBy != nil {
		line("     lost: %s", c.LostBy.Text)
	}
}

func explainSignals(line func(string, ...any), d event.RouteDecision, cluster string) {
	var parts []string
	for _, name := range []signal.Name{signal.Ready, signal.Healthy, signal.Running, signal.Queued, signal.Slots, signal.EstWaitMs} {
		v, ok := d.Signals[cluster][name]
		if !ok {
			continue
		}
		age := ""
		if a, ok := v.Age(d.DecidedAt); ok {
			age = fmt.Sprintf(", %s old", a.Round(10*time.Millisecond))
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s%s)", name, v, v.Source, age))
	}
	if len(parts) > 0 {
		line("Signals of %s: %s.", cluster, strings.Join(parts, ", "))
	}
}

func percentOf(v signal.Value) string {
	if p, ok := v.Last(); ok {
		return percent(p) + " %"
	}
	return "unknown probability"
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
