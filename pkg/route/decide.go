package route

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
)

// Decide returns where the attempt goes and why. The steps, in this order: deadline, validity, admission, verdict, rules, hard
// filters, completion estimate, ranking, exploration.
func Decide(in Input) event.RouteDecision {
	in.Policy = in.Policy.For(in.Task.Tenant)
	return decide(in)
}

// decide decides by the policy that the Task's tenant has.
func decide(in Input) event.RouteDecision {
	d := event.RouteDecision{
		DecisionID: query.AttemptID(in.Task.ID, in.Attempt), TaskID: in.Task.ID, Attempt: in.Attempt,
		Task: stamped(&in), TaskDigest: cmp.Or(in.TaskDigest, in.Task.Digest()), DecidedAt: in.Now.UTC(), Deadline: in.deadline(),
		PolicyHash: in.Policy.Hash, Excluded: in.Excluded,
		Fingerprint: in.Fingerprint, Bucket: in.Bucket, Statement: string(in.Shape.Statement), ReadOnly: in.Shape.ReadOnly, Tables: shape.Names(in.Shape.Tables),
		Estimates: in.Estimates,
	}
	s := newScene(&in)
	d.Unknown = s.unknown()
	if late := in.Now.Sub(d.Deadline); late >= 0 {
		return reject(d, NewReason(DeadlinePassed, "lateMs", strconv.FormatInt(late.Milliseconds(), 10)), nil)
	}
	if strings.TrimSpace(in.Task.SQL) == "" {
		return reject(d, NewReason(InvalidTask, "message", "there is no SQL to run: an intent alone needs a planner that turns it into SQL first; send `sql`"), nil)
	}
	if reason, refusal := admission(&in, d.Tables); refusal != nil {
		return reject(d, reason, refusal)
	}
	weight := s.features()
	s.verdict = classify.Classify(&weight, &in.Policy.Thresholds).Verdict
	d.Verdict = string(s.verdict)

	match := in.Policy.Match(s.ruleFacts())
	d.RuleTags, d.Notify = match.Tags, match.Notify()
	var rule policy.Rule
	if match.Rule != nil {
		rule = *match.Rule
		d.Rule = rule.Name
		text := rule.Reason
		switch {
		case text != "":
		case rule.Action == policy.ToReject:
			text = "it takes none of these"
		default:
			text = "it routes to " + rule.Pool
		}
		if rule.Action == policy.ToReject {
			return reject(d, NewReason(RejectedByRule, "rule", rule.Name, "reason", text), nil)
		}
		if rule.Action == policy.ToPool {
			d.Reasons = append(d.Reasons, NewReason(RuleMatched, "rule", rule.Name, "reason", text))
		}
	}
	for _, r := range match.Passed {
		d.Reasons = append(d.Reasons, NewReason(RuleNoted, "rule", r.Name, "reason", cmp.Or(r.Reason, strings.Join(r.Tags, ", "), "the client is told")))
	}
	if !parsed(&in) || in.Shape.Statement == "" {
		d.Reasons = append(d.Reasons, NewReason(ParseFailed))
	}
	if in.Attempt > 1 {
		d.Reasons = append(d.Reasons, rerouted(&in))
	}
	s.filter()
	s.applyRule(&rule)
	return s.choose(d, rule)
}

// choose ranks what passed the filters and fills the decision.
func (s *scene) choose(d event.RouteDecision, rule policy.Rule) event.RouteDecision {
	in := s.in
	ranked := s.passed(func(c *candidate) bool { return c.Filtered == nil })
	waits := false
	if len(ranked) == 0 && in.Policy.Defaults.NoCandidate == policy.WaitForPool {
		ranked = s.passed(func(c *candidate) bool {
			return c.mayWait && rule.Allows(c.Cluster)
		})
		waits = len(ranked) > 0
	}
	d.Signals = s.seen
	if len(ranked) == 0 {
		code, args := NoCandidate, []string{"why", s.whyNone()}
		if rule.Strict {
			code, args = NoCandidateFor, append(args, "rule", rule.Name, "cluster", rule.Pool)
		}
		d.Candidates = s.candidates()
		return s.advise(reject(d, NewReason(code, args...), nil))
	}
	s.rank(ranked)
	best, chosen := ranked[0], ranked[0]
	switch {
	case waits:
		best.Propensity = 1
		d.Reasons = append(d.Reasons, NewReason(WaitsThere, "cluster", best.Cluster, "why", best.Filtered.Text))
	default:
		chosen = s.explore(ranked, rule.Action == policy.ToPool && best.Cluster == rule.Pool)
	}
	d.Candidates = s.candidates()
	d.Kind, d.Target = event.Route, chosen.Target
	d.Exploration = s.exploration(best, chosen)
	d.Reasons = s.winnerReasons(d.Reasons, rule, ranked, chosen)
	if in.Shape.ReadOnly {
		d.Fallbacks = s.fallbacks(rule, ranked, chosen)
	}
	return d
}

// passed are the candidates that something holds of.
func (s *scene) passed(holds func(c *candidate) bool) []*candidate {
	out := make([]*candidate, 0, len(s.cands))
	for i := range s.cands {
		if holds(&s.cands[i]) {
			out = append(out, &s.cands[i])
		}
	}
	return out
}

func (s *scene) candidates() []event.Candidate {
	out := make([]event.Candidate, len(s.cands))
	for i := range s.cands {
		out[i] = s.cands[i].Candidate
	}
	return out
}

// fallbacks are the other candidates, best first. A pool that only the rule's choice keeps out may still catch a read that fails, those
// first that could begin soonest, since nothing has ranked them; what a real filter removed may not.
func (s *scene) fallbacks(rule policy.Rule, ranked []*candidate, chosen *candidate) []event.Target {
	out := make([]event.Target, 0, len(s.cands))
	for _, c := range ranked {
		if c != chosen {
			out = append(out, c.Target)
		}
	}
	others := s.passed(func(c *candidate) bool {
		return c.Filtered != nil && c.Filtered.Code == string(NotTheRulesPool) && rule.Allows(c.Cluster)
	})
	slices.SortStableFunc(others, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.begins(s), b.begins(s)), cmp.Compare(a.pool.CostPerSecond, b.pool.CostPerSecond))
	})
	for _, c := range others {
		out = append(out, c.Target)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// begins is in how many milliseconds the candidate could begin, about.
func (c *candidate) begins(s *scene) float64 {
	wait := c.parts.queue.Or(s.unseenWait())
	if c.asleep {
		wait += s.wakeMs(c)
	}
	return wait
}

func stamped(in *Input) *query.Task {
	t := in.Task
	if t.SLASeconds == nil {
		s := in.Policy.Defaults.SLA.Seconds()
		t.SLASeconds = &s
	}
	if t.TimeoutSeconds == nil {
		s := in.Policy.Defaults.Timeout.Seconds()
		t.TimeoutSeconds = &s
	}
	return &t
}

func reject(d event.RouteDecision, r event.Reason, rejection *event.Rejection) event.RouteDecision {
	d.Kind = event.Reject
	d.Reasons = append(d.Reasons, r)
	if d.Rejection = rejection; rejection == nil {
		d.Rejection = &event.Rejection{Code: r.Code, Message: r.Text, Estimate: d.Estimates}
	}
	return d
}

// retryAfterSeconds is how long who finds no candidate is told to wait when nothing says how long it takes. A guess:
// about how often the profiler's canaries find out that a cluster is back.
const retryAfterSeconds = 5

// advise adds when to try again, if waiting helps anywhere: after the shortest of the waits that are known.
func (s *scene) advise(d event.RouteDecision) event.RouteDecision {
	var first *candidate
	least := 0.0
	for i := range s.cands {
		c := &s.cands[i]
		if c.Filtered == nil || !c.Filtered.WaitHelps {
			continue
		}
		after := float64(retryAfterSeconds)
		if wait, ok := c.parts.queue.Get(); ok && c.Filtered.Code == string(QueueWaitOverLimit) {
			after = math.Max(1, math.Ceil((wait-float64(c.pool.MaxQueueWait.Milliseconds()))/1000))
		}
		if first == nil || after < least {
			first, least = c, after
		}
	}
	if first != nil {
		wait := int64(least)
		d.Rejection.RetryAfterSeconds = &wait
		d.Rejection.Suggestion = "Try again in " + integer(wait) + " s. Now " + first.name() + ": " + first.Filtered.Text + "."
	}
	return d
}

func rerouted(in *Input) event.Reason {
	failed := "an earlier one"
	if n := len(in.Excluded); n > 0 {
		failed = in.Excluded[n-1].Cluster
	}
	if in.LastFailure != nil {
		failed += " (" + in.LastFailure.Class + ")"
	}
	return NewReason(ReroutedAfter, "attempt", strconv.Itoa(in.Attempt), "failed", failed)
}

func (s *scene) whyNone() string {
	if len(s.cands) == 0 {
		return "the policy has no pool"
	}
	parts := make([]string, 0, len(s.cands))
	for i := range s.cands {
		if c := &s.cands[i]; c.Filtered != nil {
			parts = append(parts, c.name()+": "+c.Filtered.Text)
		}
	}
	return strings.Join(parts, "; ")
}

// name is what people call the candidate: the cluster, and its queue where it has several.
func (c *candidate) name() string {
	if c.pool.SignalKey != "" {
		return c.pool.SignalKey
	}
	return c.Cluster
}
