package router

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
)

// endsKept bounds the Outcomes of Tasks with a session that are remembered for whoever takes a partition over. A reservation whose
// Outcome is forgotten stays charged at its estimate.
const endsKept = 100_000

func newEnds() (*lru.Cache[string, budget.Ended], error) {
	return lru.New[string, budget.Ended](endsKept)
}

// tenants are the accounts that quotas are checked against: this router's view of what all routers have let in.
type tenants struct {
	mu      sync.Mutex
	book    *budget.Tenants
	metrics *metrics
}

func newTenants(m *metrics) *tenants { return &tenants{book: budget.NewTenants(), metrics: m} }

// quota is what limits a Task beyond its session; on is false for most.
type quota struct {
	limits    budget.TenantLimits
	most      int64 // of the principal
	principal string
	on        bool
}

func quotaOf(p *policy.Policy, t query.Task) quota {
	q := quota{limits: p.Budgets.OfTenant(t.Tenant)}
	if p.Budgets.BatchMaxConcurrent > 0 {
		if q.principal = budget.Principal(t); q.principal != "" {
			q.most = int64(p.Budgets.BatchMaxConcurrent)
		}
	}
	if q.limits.Window == 0 {
		q.limits.Window = budget.DefaultWindow
	}
	q.on = q.limits.On() || q.most > 0 || p.Exploration.On() || p.CapsTenants()
	return q
}

// decide decides with the tenant's account, and counts what it lets in. Between the two nobody else decides for a tenant with a quota:
// two Tasks must not both see the last slot.
func (t *tenants) decide(in *route.Input, q quota, decide func() event.RouteDecision) event.RouteDecision {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show(in, q)
	d := decide()
	if d.Kind == event.Route && d.Attempt == 1 {
		t.book.Routed(budget.Routed{
			TaskID: d.TaskID, Tenant: in.Task.Tenant, Principal: q.principal, Cluster: d.Cluster, At: d.DecidedAt, Deadline: d.Deadline,
			Bytes: bytesOf(d.Estimates), ExploredMs: exploredMs(d.Exploration),
		}, q.limits.Window)
	}
	return d
}

// look gives a Task's account for an explanation.
func (t *tenants) look(in *route.Input, q quota) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show(in, q)
}

// show gives a decision the account it may know; the lock is held. Its slices are kept with every decision, so they are in it only if
// they say when there is room again.
func (t *tenants) show(in *route.Input, q quota) {
	a := t.book.Account(in.Task.Tenant, q.principal, in.Task.ID, q.limits.Window, in.Now)
	if !q.limits.Windowed() {
		a = a.Merged()
	}
	in.Tenant = &a
}

func bytesOf(estimates map[string]signal.Value) *int64 {
	n, ok := estimates[route.ScanBytes].Last()
	if !ok {
		return nil
	}
	bytes := budget.WholeBytes(n)
	return &bytes
}

// decided is what counts of a decision. A decision is large: the rest is not decoded.
type decided struct {
	TaskID    string             `json:"taskId"`
	Attempt   int                `json:"attempt"`
	Kind      event.DecisionKind `json:"kind"`
	Cluster   string             `json:"cluster"`
	DecidedAt time.Time          `json:"decidedAt"`
	Deadline  time.Time          `json:"deadline"`
	Task      struct {
		Tenant  string         `json:"tenant"`
		User    string         `json:"user"`
		Session *query.Session `json:"session"`
		Tags    []string       `json:"tags"`
	} `json:"task"`
	Estimates   map[string]signal.Value `json:"estimates"`
	Exploration *event.Exploration      `json:"exploration"`
}

func exploredMs(e *event.Exploration) int64 {
	if e == nil {
		return 0
	}
	return int64(math.Ceil(e.ExtraMs))
}

// routed counts a decision of the log. Those of other routers come as news, and may show that together they let in too much.
func (t *tenants) routed(p *policy.Policy, d decided, live bool) {
	if d.Kind != event.Route || d.Attempt != 1 {
		return
	}
	q := quotaOf(p, query.Task{Tenant: d.Task.Tenant, User: d.Task.User, Session: d.Task.Session, Tags: d.Task.Tags})
	t.mu.Lock()
	defer t.mu.Unlock()
	news := t.book.Routed(budget.Routed{
		TaskID: d.TaskID, Tenant: d.Task.Tenant, Principal: q.principal, Cluster: d.Cluster, At: d.DecidedAt, Deadline: d.Deadline,
		Bytes: bytesOf(d.Estimates), ExploredMs: exploredMs(d.Exploration),
	}, q.limits.Window)
	if !news || !live || !q.on {
		return
	}
	queries, bytes, running, concurrent := t.book.Over(d.Task.Tenant, q.principal, q.limits, q.most, d.DecidedAt)
	for code, over := range map[string]int64{
		budget.TenantQueries: queries, budget.TenantBytes: bytes, budget.TenantConcurrent: running, budget.Concurrent: concurrent,
	} {
		if over > 0 {
			t.metrics.overshoot.WithLabelValues(code).Observe(float64(over))
		}
	}
}

// knows says whether a Task is counted.
func (t *tenants) knows(taskID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book.Knows(taskID)
}

func (t *tenants) ended(o event.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.Ended(budget.EndOf(o))
}

func (t *tenants) forget(window time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.Forget(window, now)
}

func (t *tenants) views(tenant string, p *policy.Policy, now time.Time) []budget.TenantView {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.book.Views(tenant, func(name string) time.Duration { return cmp.Or(p.Budgets.OfTenant(name).Window, budget.DefaultWindow) }, now)
	if out == nil {
		out = []budget.TenantView{}
	}
	return out
}

// begin drops everything: what is followed is read again from further back.
func (t *tenants) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book = budget.NewTenants()
}

// errQuotas is why what is followed begins anew: a policy counts what nobody has counted until now.
var errQuotas = errors.New("the policy has other quotas")

// counted is how far back a policy counts what tenants use, and whether it counts anything: quotas, what exploration costs, and what a
// tenant has running in a pool that caps it.
func counted(p *policy.Policy) (window time.Duration, on bool) {
	window, on = p.Budgets.Quotas()
	return window, on || p.Exploration.On() || p.CapsTenants()
}

// followAccounts folds decisions and Outcomes, everybody's, into the tenants' accounts, and tells the keepers which Tasks have ended.
// Without quotas no decision is read.
func (a *App) followAccounts(ctx context.Context) error {
	for ctx.Err() == nil {
		p := a.decider.policy.Load()
		window, on := counted(p)
		back := a.cfg.Budgets.Window
		if on { // the slice that is half out of the window too, and what may still run
			back = max(back, window+window/12, 2*p.Defaults.Timeout)
		}
		a.decider.tenants.begin()
		inner, again := context.WithCancelCause(ctx)
		go a.watchQuotas(inner, window, on, again)
		tc := stream.TailConfig{Name: "accounts", Topics: []string{event.TopicOutcomes}, Since: time.Now().Add(-back)}
		if on {
			tc.Topics = append(tc.Topics, event.TopicDecisions)
		}
		err := a.follow(inner, tc, func() { a.budgetsReady.Open(); a.catchUp() }, func(rec *kgo.Record) { a.account(rec, on) })
		again(nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// watchQuotas ends a fold that lacks what a newer policy counts, and keeps the fold small.
func (a *App) watchQuotas(ctx context.Context, window time.Duration, on bool, again context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p := a.decider.policy.Load()
		if longest, now := counted(p); now && (!on || longest > window) {
			again(errQuotas)
			return
		}
		if n%15 == 0 {
			a.decider.tenants.forget(window, time.Now())
		}
	}
}

// account folds one record of decisions or outcomes in.
func (a *App) account(rec *kgo.Record, quotas bool) {
	topic := a.cfg.Kafka.Name(rec.Topic)
	session := topic == event.TopicOutcomes && bytes.Contains(rec.Value, sessionIDField)
	switch {
	case !quotas && !session:
		return
	case topic == event.TopicDecisions && a.decider.tenants.knows(string(rec.Key)):
		return // most are this router's own
	}
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if err != nil {
		return // the profiler dead-letters it, once
	}
	switch topic {
	case event.TopicDecisions:
		var d decided
		if json.Unmarshal(env.Data, &d) == nil {
			a.decider.tenants.routed(a.decider.policy.Load(), d, a.live())
		}
	case event.TopicOutcomes:
		var o event.Outcome
		if o.UnmarshalJSON(env.Data) != nil {
			return
		}
		if quotas {
			a.decider.tenants.ended(o)
		}
		if session {
			a.endOfSessionTask(o)
		}
	}
}

// live says whether the past is read: what was over a quota then is not news.
func (a *App) live() bool {
	select {
	case <-a.caughtUp:
		return true
	default:
		return false
	}
}

// sessionIDField is in every Outcome of a Task with a session: executors write them all.
var sessionIDField = []byte(`"sessionId":`)

// endOfSessionTask remembers how a Task of a session ended, and tells the session's keeper, if this router has it.
func (a *App) endOfSessionTask(o event.Outcome) {
	e, ok := budget.EndedBy(o)
	if !ok || o.Class != query.Agent { // no other class has a budget
		return
	}
	a.ends.Add(e.TaskID, e)
	if k := a.keepers.of(e.Key.Session); k != nil {
		k.settle(e)
	}
}
