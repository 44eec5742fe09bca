package route

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Explain tells a decision in words. It reads nothing but the decision, so a decision from last week explains itself.
func Explain(d event.RouteDecision) string {
	var b strings.Builder
	e := words{&b}
	e.head(&d)
	if d.Kind == event.PassCancel {
		return b.String()
	}
	if d.Rule != "" {
		e.line("Rule: %s (policy %s). Verdict: %s.", d.Rule, d.PolicyHash, orUnknown(d.Verdict))
	}
	e.line("Query: fingerprint %s, %s, tables %s, scan %s.", orUnknown(d.Fingerprint), orUnknown(d.Statement),
		tablesOf(&d), d.Estimates[ScanBytes])
	e.candidates(&d)
	e.signals(&d)
	if len(d.Unknown) > 0 {
		e.line("Not known when it was decided: %s.", strings.Join(d.Unknown, "; "))
	}
	if len(d.Fallbacks) > 0 {
		names := make([]string, len(d.Fallbacks))
		for i, f := range d.Fallbacks {
			names[i] = nameOf(&d, f)
		}
		e.line("If it fails there: %s.", strings.Join(names, ", then "))
	}
	return b.String()
}

// words writes lines.
type words struct{ b *strings.Builder }

func (e words) line(format string, args ...any) { fmt.Fprintf(e.b, format+"\n", args...) }

func (e words) head(d *event.RouteDecision) {
	switch d.Kind {
	case event.Reject:
		e.line("Task %s is rejected.", d.TaskID)
		if d.Rejection != nil {
			e.line("  %s [%s]", d.Rejection.Message, d.Rejection.Code)
			if s := d.Rejection.RetryAfterSeconds; s != nil {
				e.line("  Try again after %d s.", *s)
			}
		}
	case event.PassCancel:
		e.line("Task %s is to be cancelled.", d.TaskID)
	default:
		e.line("Task %s, attempt %d, goes to %s (%s), queue %s, resources %s.", d.TaskID, d.Attempt, d.Cluster, d.Engine, d.Queue, d.Resource)
		for _, r := range d.Reasons {
			e.line("  because %s [%s]", r.Text, r.Code)
		}
	}
}

func (e words) candidates(d *event.RouteDecision) {
	if len(d.Candidates) > 0 {
		e.line("Candidates:")
	}
	for i := range d.Candidates {
		c := &d.Candidates[i]
		name := nameOf(d, c.Target)
		if f := c.Filtered; f != nil {
			help := ""
			switch {
			case f.WaitHelps && f.ScaleHelps:
				help = " (waiting or more capacity helps)"
			case f.WaitHelps:
				help = " (waiting helps)"
			case f.ScaleHelps:
				help = " (more capacity helps)"
			}
			e.line("  -  %s: %s%s [%s]", name, f.Text, help, f.Code)
		}
		if c.Estimate == nil {
			continue
		}
		e.estimate(c, name)
		if text := LossText(d, c); text != "" {
			e.line("     lost: %s", text)
		}
	}
}

func (e words) estimate(c *event.Candidate, name string) {
	est := c.Estimate
	deliver := ""
	if est.DeliverMs != (signal.Number{}) {
		deliver = " + delivery " + inMs(est.DeliverMs)
	}
	odds := "in time with " + percentOf(est.PHit) + " %"
	if c.Propensity != 0 && c.Propensity != 1 {
		odds += ", chosen with " + percent(c.Propensity) + " %"
	}
	e.line("  %d. %s: queue %s + start %s + run %s%s, %s, costs %s (%s)", c.Rank, name, inMs(est.QueueMs), inMs(est.AcquireMs), inMs(est.ExecMs),
		deliver, odds, est.Cost, basis(est.Evidence))
}

// basis says where an estimate comes from.
func basis(e event.Evidence) string {
	switch {
	case e.Level == estimate.FromGuess && e.N == 0:
		return "a guess: no history there, and what it scans or how fast the pool does is not known"
	case e.Level == estimate.FromGuess:
		return "only " + ofRuns(e.N) + ", so mostly a guess"
	case e.Level == estimate.FromPrior && e.N == 0:
		return "no history there, from the pool's start-up time and scan rate"
	case e.Level == estimate.FromPrior:
		return "only " + ofRuns(e.N) + ", so mostly from the pool's start-up time and scan rate"
	case e.Level == estimate.FromEngine:
		return "no history there, from " + ofRuns(e.N) + " on other clusters of the engine in " + e.Window
	case e.Level == estimate.FromBucket:
		return "from " + ofRuns(e.N) + " with parameters of this size in " + e.Window
	default:
		return "from " + ofRuns(e.N) + " in " + e.Window
	}
}

func ofRuns(n int64) string {
	if n == 1 {
		return "1 run"
	}
	return integer(n) + " runs"
}

// shown is the order in which people like to read the facts.
var shown = [...]signal.Name{
	signal.Ready, signal.Healthy, signal.Running, signal.Queued, signal.Slots, signal.EstWaitMs, signal.DonePerSecond, signal.WakeMs,
	signal.SlowDown, signal.LagMs, signal.AppliedTS,
}

// signals lists what was known of each cluster, with its source and age.
func (e words) signals(d *event.RouteDecision) {
	seen := map[string]bool{}
	for i := range d.Candidates {
		t := d.Candidates[i].Target
		for _, key := range []string{t.Cluster, t.Cluster + "/" + t.Queue} {
			if seen[key] {
				continue
			}
			seen[key] = true
			var parts []string
			for _, name := range shown {
				v, ok := d.Signals.Get(key, name)
				if !ok {
					continue
				}
				age := ""
				if a, ok := v.Age(d.DecidedAt); ok {
					age = fmt.Sprintf(", %s old", a.Round(10*time.Millisecond))
				}
				parts = append(parts, fmt.Sprintf("%s %s (%s%s)", name, v, cmp.Or(v.Source, "unknown source"), age))
			}
			if len(parts) > 0 {
				e.line("Signals of %s: %s.", key, strings.Join(parts, ", "))
			}
		}
	}
}

// LossText says what a candidate lost by: the factor, the numbers, and the smallest change that would have made it equal. It is
// empty for one that did not lose.
func LossText(d *event.RouteDecision, c *event.Candidate) string {
	if c.LostBy == nil {
		return ""
	}
	cmp := comparison{other: nameOf(d, c.Target), l: c.Estimate, w: &event.CandidateEstimate{}}
	if cmp.l == nil {
		cmp.l = &event.CandidateEstimate{}
	}
	for i := range d.Candidates {
		if w := &d.Candidates[i]; w.Rank == 1 && w.Estimate != nil {
			cmp.w = w.Estimate
		}
	}
	if d.Task != nil {
		cmp.slaMs, cmp.hint = integer(d.Task.SLA(0).Milliseconds()), wishText(d.Task)
	}
	text := factorReason(Code(c.LostBy.Code), &cmp).Text
	if f := c.LostBy.Flip; f != nil {
		text += "; " + cmp.other + " " + flipText(f)
	}
	return text
}

// flipText says a change in words, to stand behind the candidate's name.
func flipText(f *event.Flip) string {
	to := f.To.String()
	switch f.What {
	case FlipQueue:
		if n, ok := f.To.Get(); ok && n == 0 {
			return "would do with no queue at all"
		}
		return "would do with a queue of at most " + to + " ms"
	case FlipRun:
		return "would do if it ran within " + to + " ms"
	case FlipSLA:
		return "would do with an SLA of " + to + " ms"
	case FlipSuccess:
		return "would do if " + percentOf(f.To) + " % of its runs ended well"
	case FlipCost:
		return "would do at a price of " + to + " a second"
	case FlipQueries:
		return "would do with at most " + to + " queries there"
	case FlipHint:
		return "would be taken if the request asked for it"
	case FlipHealth:
		return "would do if it were known to be healthy"
	default:
		return "would do with " + f.What + " " + to
	}
}

// nameOf is what people call a target: the cluster, and its queue where the cluster has several.
func nameOf(d *event.RouteDecision, t event.Target) string {
	for i := range d.Candidates {
		if o := d.Candidates[i].Target; o.Cluster == t.Cluster && o != t {
			return t.Cluster + "/" + t.Queue
		}
	}
	return t.Cluster
}

func inMs(n signal.Number) string { return n.Value(signal.Millis).String() }

// tablesOf names the tables. A statement that was read and names none has none.
func tablesOf(d *event.RouteDecision) string {
	if len(d.Tables) == 0 && d.Statement != "" {
		return "none"
	}
	return orUnknown(strings.Join(d.Tables, ", "))
}

func orUnknown(s string) string { return cmp.Or(s, "unknown") }
