package route

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Decide returns where the attempt goes and why. The steps, in this order: deadline, session budget, rules, verdict, hard
// filters, completion estimate, ranking.
func Decide(in Input) event.RouteDecision {
	in.Policy = in.Policy.For(in.Task.Tenant)
	d := event.RouteDecision{
		DecisionID: query.AttemptID(in.Task.ID, in.Attempt), TaskID: in.Task.ID, Attempt: in.Attempt,
		Task: stamped(&in), TaskDigest: cmp.Or(in.TaskDigest, in.Task.Digest()), DecidedAt: in.Now.UTC(), Deadline: in.deadline(),
		PolicyHash: in.Policy.Hash, Excluded: in.Excluded,
		Fingerprint: in.Fingerprint, Bucket: in.Bucket, Statement: string(in.Shape.Statement), ReadOnly: in.Shape.ReadOnly, Tables: shape.Names(in.Shape.Tables),
		Estimates: in.Estimates, Unknown: unknown(&in),
	}
	if late := in.Now.Sub(d.Deadline); late >= 0 {
		return reject(d, NewReason(DeadlinePassed, "lateMs", strconv.FormatInt(late.Milliseconds(), 10)), nil)
	}
	if strings.TrimSpace(in.Task.SQL) == "" {
		return reject(d, NewReason(InvalidTask, "message", "there is no SQL to run: an intent alone needs a planner that turns it into SQL first; send `sql`"), nil)
	}
	if reason, refusal := admission(&in, d.Tables); refusal != nil {
		d.Reasons = []event.Reason{reason}
		d.Kind, d.Rejection = event.Reject, refusal
		return d
	}
	verdict, _, _ := classify.Classify(features(&in), in.Policy.Thresholds)
	d.Verdict = string(verdict)

	match := in.Policy.Match(facts(&in))
	d.RuleTags, d.Notify = match.Tags, match.Notify()
	var rule policy.Rule
	if match.Rule != nil {
		rule = *match.Rule
		d.Rule = rule.Name
		text := rule.Reason
		if text == "" {
			text = string(rule.Action) + rule.Pool
		}
		if rule.Action == policy.ToReject {
			return reject(d, NewReason(RejectedByRule, "rule", rule.Name, "reason", text), nil)
		}
		if rule.Action == policy.ToPool {
			d.Reasons = append(d.Reasons, NewReason(RuleMatched, "rule", rule.Name, "reason", text))
		}
	}
	cands := candidates(&in, rule)
	if in.Attempt > 1 {
		d.Reasons = append(d.Reasons, rerouted(&in))
	}
	return choose(&in, d, rule, cands)
}

// choose ranks what passed the filters and fills the decision.
func choose(in *Input, d event.RouteDecision, rule policy.Rule, cands []*candidate) event.RouteDecision {
	ranked := rank(in, cands)
	for _, c := range cands {
		d.Candidates = append(d.Candidates, c.Candidate)
	}
	d.Signals = used(in, cands)
	if len(ranked) == 0 {
		code, args := NoCandidate, []string{"why", whyNone(cands)}
		if rule.Strict {
			code, args = NoCandidateFor, append(args, "rule", rule.Name, "cluster", rule.Pool)
		}
		return reject(d, NewReason(code, args...), cands)
	}
	winner := ranked[0]
	d.Kind, d.Target = event.Route, winner.Target
	d.Reasons = append(d.Reasons, winnerReasons(in, rule, cands, ranked)...)
	if in.Shape.ReadOnly {
		for _, c := range ranked[1:] {
			d.Fallbacks = append(d.Fallbacks, c.Target)
		}
		// A pool that another rule's choice keeps out may still catch a read that fails; what a real filter removed may not.
		for _, c := range cands {
			if c.Filtered != nil && c.Filtered.Code == string(NotTheRulesPool) && rule.Allows(c.Cluster) {
				d.Fallbacks = append(d.Fallbacks, c.Target)
			}
		}
	}
	return d
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

func reject(d event.RouteDecision, r event.Reason, cands []*candidate) event.RouteDecision {
	d.Kind = event.Reject
	d.Reasons = append(d.Reasons, r)
	d.Rejection = &event.Rejection{Code: r.Code, Message: r.Text, Estimate: d.Estimates}
	for _, c := range cands {
		if c.Filtered != nil && c.Filtered.WaitHelps {
			wait := int64(5)
			d.Rejection.RetryAfterSeconds = &wait
			d.Rejection.Suggestion = "Try again in a few seconds: " + c.Cluster + " " + c.Filtered.Text + "."
			break
		}
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

func whyNone(cands []*candidate) string {
	if len(cands) == 0 {
		return "the policy has no pool"
	}
	parts := make([]string, 0, len(cands))
	for _, c := range cands {
		if c.Filtered != nil {
			parts = append(parts, c.Cluster+" "+c.Filtered.Text)
		}
	}
	return strings.Join(parts, "; ")
}

// used returns the signals of the clusters that were looked at, as they counted.
func used(in *Input, cands []*candidate) signal.Snapshot {
	out := signal.Snapshot{}
	for _, c := range cands {
		values, ok := in.Signals[c.Cluster]
		if !ok {
			continue
		}
		aged := make(map[signal.Name]signal.Value, len(values))
		for name, v := range values {
			aged[name] = v.Aged(in.Now, in.Policy.Defaults.SignalMaxAge)
		}
		out[c.Cluster] = aged
	}
	return out
}
