// Package replay makes recorded decisions again, with the policy they were made by or with another one, and says what differs.
//
// It is core: it joins the decisions and inputs that it is given, decides by route.Decide, and counts. Reading topics and
// folders, and printing to a terminal, are the command's. Inputs are as they were recorded: the queues and budgets that another
// policy would have led to by and by are not simulated.
package replay

import (
	"bytes"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
)

// Options say what is compared with what.
type Options struct {
	// Policies are those of the record, by hash.
	Policies map[string]*policy.Policy
	// Policy is the one to try. Without it each decision is made again by its own, which must give the same bytes.
	Policy *policy.Policy
	// Against, when set, takes the place of the recorded decisions: inputs are decided by it and by Policy. Decisions are not
	// needed then.
	Against *policy.Policy
	// From and To bound the decisions by the time they were made: From is in, To is out; zero is no bound.
	From, To time.Time
	// Tenants and Fingerprints, when there are any, are the only ones looked at.
	Tenants, Fingerprints []string
	// Samples is how many changed decisions are told in words; 0 means 3, less means none.
	Samples int
	// Latches give an input the latches of a policy that it was not decided by. They must have seen all inputs.
	Latches []*Latches
}

// Run joins the records of one replay and counts. The first decision of an id in the log is the one that counts; an input
// belongs to it if it was made at the same moment.
type Run struct {
	opts Options
	// seen holds the moment of the first decision of each id.
	seen      map[string]int64
	decisions map[string]waiting
	inputs    map[string][]route.Input
	tally     tally
}

// waiting is a decision whose input has not come yet.
type waiting struct {
	raw      []byte
	decision event.RouteDecision
}

// NewRun starts a replay.
func NewRun(o Options) *Run {
	if o.Samples == 0 {
		o.Samples = 3
	}
	return &Run{
		opts: o, seen: map[string]int64{}, decisions: map[string]waiting{}, inputs: map[string][]route.Input{}, tally: newTally(max(0, o.Samples)),
	}
}

// Decision takes a decision of the log, as it was written and decoded, in the order of its partition.
func (r *Run) Decision(raw []byte, d event.RouteDecision) {
	if d.Kind == event.PassCancel {
		if r.inTime(d.DecidedAt) {
			r.tally.gaps.Cancels++
		}
		return
	}
	at := d.DecidedAt.UnixNano()
	if first, ok := r.seen[d.DecisionID]; ok {
		if first != at && r.inTime(d.DecidedAt) {
			r.tally.gaps.Repeats++
		}
		return
	}
	r.seen[d.DecisionID] = at
	held := r.inputs[d.DecisionID]
	delete(r.inputs, d.DecisionID)
	if !r.inTime(d.DecidedAt) || !r.wanted(tenantOf(d), d.Fingerprint) {
		return
	}
	for _, in := range held {
		if in.Now.UnixNano() == at {
			r.replay(raw, d, in)
			return
		}
	}
	r.decisions[d.DecisionID] = waiting{raw, d}
}

// Input takes an input of the log.
func (r *Run) Input(in route.Input) {
	if !r.inTime(in.Now) || !r.wanted(in.Task.Tenant, in.Fingerprint) {
		return
	}
	id := decisionID(in)
	if r.opts.Against != nil {
		if _, ok := r.seen[id]; ok {
			r.tally.gaps.Repeats++
			return
		}
		r.seen[id] = in.Now.UnixNano()
		r.MadeUp(in, nil)
		return
	}
	at, ok := r.seen[id]
	if !ok {
		r.inputs[id] = append(r.inputs[id], in)
		return
	}
	if w, open := r.decisions[id]; open && at == in.Now.UnixNano() {
		delete(r.decisions, id)
		r.replay(w.raw, w.decision, in)
	}
}

func (r *Run) inTime(at time.Time) bool {
	return (r.opts.From.IsZero() || !at.Before(r.opts.From)) && (r.opts.To.IsZero() || at.Before(r.opts.To))
}

func (r *Run) wanted(tenant, fingerprint string) bool {
	return (len(r.opts.Tenants) == 0 || slices.Contains(r.opts.Tenants, tenant)) &&
		(len(r.opts.Fingerprints) == 0 || slices.Contains(r.opts.Fingerprints, fingerprint))
}

// replay makes one recorded decision again.
func (r *Run) replay(raw []byte, d event.RouteDecision, in route.Input) {
	if len(in.Extra) > 0 {
		r.tally.gaps.Newer++
	}
	own := r.opts.Policies[in.PolicyHash]
	exact := false
	var again event.RouteDecision
	if own != nil {
		again = decide(in, own)
		exact = same(raw, again)
		r.tally.checked(exact)
	} else {
		r.tally.unchecked(in.PolicyHash)
	}
	c := Case{Input: in, Before: d, BeforePolicy: own, Reproduced: exact}
	switch {
	case r.opts.Policy == nil && own == nil:
		return // nothing to compare with
	case r.opts.Policy == nil:
		c.After, c.AfterPolicy, c.Identical, c.Prepared = again, own, exact, in
	default:
		c.AfterPolicy = r.opts.Policy
		c.After, c.Prepared = r.with(in, r.opts.Policy)
		if c.Identical = same(raw, c.After); own != nil && !exact {
			// What this version decides otherwise is not the policy's doing: both policies are asked now.
			c.Before, c.Identical = again, own.Hash == r.opts.Policy.Hash
		}
	}
	r.tally.add(c)
}

// MadeUp decides an input by both policies; facts describe it to people when nothing was recorded.
func (r *Run) MadeUp(in route.Input, facts []string) {
	c := Case{Input: in, BeforePolicy: r.opts.Against, AfterPolicy: r.opts.Policy, Reproduced: true, Facts: facts}
	c.Before, c.Input = r.with(in, r.opts.Against)
	c.After, c.Prepared = r.with(in, r.opts.Policy)
	c.Identical = r.opts.Against.Hash == r.opts.Policy.Hash
	r.tally.add(c)
}

// with decides by a policy that is not the record's own; one that is needs no preparing, and must get none.
func (r *Run) with(in route.Input, p *policy.Policy) (event.RouteDecision, route.Input) {
	if in.PolicyHash != p.Hash {
		for _, l := range r.opts.Latches {
			if l.policy.Hash == p.Hash {
				in.Latches = l.at(in, r.opts.Policies[in.PolicyHash])
			}
		}
		if uncounted(in, p) {
			r.tally.gaps.Uncounted++
		}
	}
	return decide(in, p), in
}

// uncounted says that a policy limits what the record did not count: the limit is not applied then.
func uncounted(in route.Input, p *policy.Policy) bool {
	b := &p.For(in.Task.Tenant).Budgets
	quota := b.OfTenant(in.Task.Tenant)
	return in.Session == nil && b.OfSession(in.Task) != nil || in.Tenant == nil && quota.On()
}

func decide(in route.Input, p *policy.Policy) event.RouteDecision {
	in.Policy = p
	return route.Decide(in)
}

// same says whether a decision, written now, is what was recorded.
func same(raw []byte, d event.RouteDecision) bool {
	data, err := event.Marshal(d)
	return err == nil && bytes.Equal(raw, data)
}

func tenantOf(d event.RouteDecision) string {
	if d.Task == nil {
		return ""
	}
	return d.Task.Tenant
}

// Report is what has been found so far. Decisions and inputs that have not met by now are counted as gaps.
func (r *Run) Report() Report {
	rep := r.tally.report()
	rep.From, rep.To = r.opts.From, r.opts.To
	if r.opts.Against != nil {
		rep.Before, rep.Mode = r.opts.Against.Hash, Compared
		if r.tally.madeUp {
			rep.Mode, rep.First, rep.Last, rep.Tenants, rep.Fingerprints = MadeUp, time.Time{}, time.Time{}, nil, nil
		}
	}
	if r.opts.Policy != nil {
		rep.After = r.opts.Policy.Hash
	} else {
		rep.Mode = Checked
	}
	for _, w := range r.decisions {
		if madeWithoutPolicy(w.decision) {
			rep.Gaps.WithoutPolicy++
		} else {
			rep.Gaps.InputMissing++
		}
	}
	for _, held := range r.inputs {
		rep.Gaps.DecisionMissing += len(held)
	}
	return rep
}

// madeWithoutPolicy says that the router decided by itself: the request was not valid, or its attempts were used up. No policy
// could change that, and there is no input.
func madeWithoutPolicy(d event.RouteDecision) bool {
	if d.Kind != event.Reject || d.Rejection == nil {
		return false
	}
	return d.Rejection.Code == string(route.InvalidTask) || d.Rejection.Code == string(route.TooManyTries)
}
