package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
)

// Describe says the policy in words: its pools, thresholds and latches, its rules in order, what tenants have of their own.
func (p *Policy) Describe() string {
	d := &description{}
	d.line("Policy %s: %d pools, %d rules.", p.Hash, len(p.Pools), len(p.Rules))
	d.head("Pools")
	for i := range p.Pools {
		d.line("  %s", p.Pools[i].describe())
	}
	d.head("Where a request says nothing")
	d.line("  SLA %s, timeout %s; a signal older than %s is stale; without a candidate: %s.",
		p.Defaults.SLA, p.Defaults.Timeout, p.Defaults.SignalMaxAge, p.Defaults.NoCandidate)
	d.head("Thresholds")
	for _, name := range p.Thresholds.Names() {
		d.line("  %s = %s%s", name, p.Thresholds.Format(name), p.Thresholds.Named[name].rangeText())
	}
	if len(p.Latches) > 0 {
		d.head("Latches")
		for i := range p.Latches {
			d.line("  %s", p.Latches[i].describe())
		}
	}
	d.head("Rules, in order; the first that matches decides")
	d.rules(p.Rules)
	d.budgets(p)
	for _, tenant := range p.Tenants() {
		d.tenant(tenant, p, p.tenants[tenant])
	}
	if p.Exploration.On() {
		d.head("Exploration")
		d.line("  %g %% of the requests, and another %g %% where few runs are known, at most %g %% of extra time.",
			100*p.Exploration.Share, 100*p.Exploration.NewShare, 100*p.Exploration.MaxExtraShare)
	}
	return d.b.String()
}

type description struct{ b strings.Builder }

func (d *description) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *description) head(title string) { fmt.Fprintf(&d.b, "\n%s\n", title) }

func (d *description) rules(rules []Rule) {
	for i := range rules {
		r := &rules[i]
		if r.When.Always() {
			d.line("  %d. %s: everything else %s.", i+1, r.Name, r.does())
			continue
		}
		missing := ""
		if r.OnMissing == MissingMatches {
			missing = ", or if it can't be known"
		}
		d.line("  %d. %s: if %s%s, it %s.", i+1, r.Name, r.When.String(), missing, r.does())
	}
}

func (d *description) tenant(name string, p, own *Policy) {
	d.head("Tenant " + name)
	for _, t := range own.Thresholds.Names() {
		if have, was := own.Thresholds.Format(t), p.Thresholds.Format(t); have != was {
			d.line("  %s = %s instead of %s", t, have, was)
		}
	}
	if own.Defaults != p.Defaults {
		d.line("  SLA %s, timeout %s; a signal older than %s is stale; without a candidate: %s.",
			own.Defaults.SLA, own.Defaults.Timeout, own.Defaults.SignalMaxAge, own.Defaults.NoCandidate)
	}
	if n := len(own.Rules) - len(p.Rules); n > 0 {
		d.line("  Before the other rules:")
		d.rules(own.Rules[:n])
	}
}

func (d *description) budgets(p *Policy) {
	b := &p.Budgets
	if b.AgentSession == nil && b.BatchMaxConcurrent == 0 && !b.Tenant.On() && len(b.Tenants) == 0 {
		return
	}
	d.head("Budgets")
	if l := b.AgentSession; l != nil {
		var parts []string
		if l.MaxQueries > 0 {
			parts = append(parts, fmt.Sprintf("%d queries", l.MaxQueries))
		}
		if l.MaxBytes > 0 {
			parts = append(parts, formatSize(float64(l.MaxBytes)))
		}
		if l.MaxWall > 0 {
			parts = append(parts, l.MaxWall.String()+" of running time")
		}
		if l.MaxRepeats > 0 {
			parts = append(parts, fmt.Sprintf("%d runs of one query", l.MaxRepeats))
		}
		if l.MaxGrowing > 0 {
			parts = append(parts, fmt.Sprintf("%d growing queries in a row", l.MaxGrowing))
		}
		d.line("  A session of an agent: %s.", strings.Join(parts, ", "))
	}
	if b.BatchMaxConcurrent > 0 {
		d.line("  A batch principal: %d queries at once.", b.BatchMaxConcurrent)
	}
	if b.Tenant.On() {
		d.line("  A tenant: %s.", quota(b.Tenant))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Tenants)) {
		d.line("  Tenant %s: %s.", name, quota(b.Tenants[name]))
	}
}

func quota(l budget.TenantLimits) string {
	var parts []string
	if l.MaxQueries > 0 {
		parts = append(parts, fmt.Sprintf("%d queries in %s", l.MaxQueries, l.Window))
	}
	if l.MaxBytes > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s", formatSize(float64(l.MaxBytes)), l.Window))
	}
	if l.MaxConcurrent > 0 {
		parts = append(parts, fmt.Sprintf("%d queries at once", l.MaxConcurrent))
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

func (p *Pool) describe() string {
	parts := []string{p.Kind}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if p.Slots > 0 {
		add("%d slots", p.Slots)
	}
	if p.MaxBytesPerQuery > 0 {
		add("at most %s a query", formatSize(float64(p.MaxBytesPerQuery)))
	}
	if p.MaxMemoryPerQuery > 0 {
		add("%s of memory a query", formatSize(float64(p.MaxMemoryPerQuery)))
	}
	if p.Spills {
		add("spills to disk")
	}
	if p.MaxQueueWait > 0 {
		add("out while its queue is longer than %s", p.MaxQueueWait)
	}
	if p.SleepsAtZero {
		add("sleeps at zero, wakes in about %s", p.WakeTime)
	}
	if p.ReadOnly {
		add("reads only")
	}
	for what, list := range map[string][]string{"dialects": p.Dialects, "data sets": p.Datasets, "tenants": p.Tenants, "catalogs": p.Catalogs} {
		if len(list) > 0 {
			add("%s %s", what, strings.Join(list, ", "))
		}
	}
	slices.Sort(parts[1:])
	for _, lane := range p.Lanes {
		add("queue %s/%s", lane.Queue, lane.Resource)
	}
	return p.Name + ": " + strings.Join(parts, ", ")
}

func (t Threshold) rangeText() string {
	if t.Line == 0 {
		return ""
	}
	text := fmt.Sprintf(" (%s to %s)", t.format(t.Min), t.format(t.Max))
	if t.About != "" {
		text += ": " + t.About
	}
	return text
}

func (s *LatchSpec) describe() string {
	edge := func(e Edge) string {
		spec := PoolFacts[s.Fact]
		test := Test{Fact: s.Watch, Op: e.Op, Number: e.Number, Threshold: e.Threshold, unit: spec.Unit, bool: spec.Kind == BoolKind}
		text := test.String()
		if e.Hold > 0 {
			text += fmt.Sprintf(" for %s", e.Hold)
		}
		if e.Samples > 1 {
			text += fmt.Sprintf(" in %d observations in a row", e.Samples)
		}
		return text
	}
	return fmt.Sprintf("%s: on when %s, off when %s; unknown after %s without a signal, or %s between the two",
		s.Name, edge(s.Enter), edge(s.Leave), s.AbsentAfter.Round(time.Second), s.KeepFor.Round(time.Second))
}
