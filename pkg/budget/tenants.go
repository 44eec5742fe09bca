package budget

import (
	"maps"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Tenants counts what tenants use: a fold over decisions and Outcomes, each Task once, in whatever order the two topics are read. Every
// router has its own, of all routers' decisions, so that a quota spans them; what others have just decided is missing until it is
// read. It is not safe for concurrent use.
type Tenants struct {
	all  map[string]*tenant
	runs map[string]*run // Tasks that run, by id
	// ended are Tasks that ended lately: a decision that is read again, or late, must not count as one that runs. There are two
	// generations of them.
	ended, before map[string]End
	turned        time.Time
}

type tenant struct {
	slices     []*slice // oldest first
	running    int64
	principals map[string]int64
	clusters   map[string]int64
}

type slice struct {
	start time.Time
	width time.Duration
	used  Slice // without Leaves
}

type run struct {
	tenant, principal, cluster string

	deadline time.Time
	bytes    *int64
	in       *slice
}

// Routed is what counts of a Task that was routed for the first time.
type Routed struct {
	TaskID, Tenant, Principal string
	// Cluster is where its first attempt goes; a later one that goes elsewhere is counted there all the same.
	Cluster      string
	At, Deadline time.Time
	// Bytes is the estimate of what it scans, nil when there is none.
	Bytes *int64
	// ExploredMs is how much longer than the best it was expected to take, because it explores.
	ExploredMs int64
}

// End is what counts of a Task's end.
type End struct {
	TaskID string
	Bytes  *int64
	ExecMs *int64
	// Void says that it never reached an engine.
	Void bool

	counted bool
}

// EndOf reads what counts off an Outcome.
func EndOf(o event.Outcome) End {
	return End{TaskID: o.TaskID, Bytes: o.Stats.ReadBytes, ExecMs: o.Stats.ExecMs, Void: o.Attempts == 0}
}

// remembered is how long a Task is known after its end, at least: a router that died has its requests read again sooner.
const remembered = 5 * time.Minute

// NewTenants returns a fold without events.
func NewTenants() *Tenants {
	return &Tenants{all: map[string]*tenant{}, runs: map[string]*run{}, ended: map[string]End{}, before: map[string]End{}}
}

// Routed counts a Task, in slices for a window of that length. A second call for the same Task changes nothing, and is false.
func (t *Tenants) Routed(r Routed, window time.Duration) bool {
	if _, ok := t.runs[r.TaskID]; ok {
		return false
	}
	end, over := t.ending(r.TaskID)
	if over && end.counted {
		return false
	}
	a := t.tenant(r.Tenant)
	in := a.slice(r.At, window)
	in.used.Queries++
	in.used.ExploredMs += r.ExploredMs
	if r.Bytes != nil {
		in.used.Bytes += *r.Bytes
	}
	t.runs[r.TaskID] = &run{tenant: r.Tenant, principal: r.Principal, cluster: r.Cluster, deadline: r.Deadline, bytes: r.Bytes, in: in}
	a.running++
	a.clusters[r.Cluster]++
	if r.Principal != "" {
		a.principals[r.Principal]++
	}
	if over { // its Outcome was read first
		t.Ended(end)
	}
	return true
}

// Knows says whether a Task is counted: it runs, or has ended lately.
func (t *Tenants) Knows(taskID string) bool {
	if _, ok := t.runs[taskID]; ok {
		return true
	}
	end, ok := t.ending(taskID)
	return ok && end.counted
}

// Ended counts a Task's end, once.
func (t *Tenants) Ended(e End) {
	r, ok := t.runs[e.TaskID]
	if !ok {
		if _, known := t.ending(e.TaskID); !known {
			t.ended[e.TaskID] = e
		}
		return
	}
	t.drop(e.TaskID, r)
	switch {
	case e.Void:
		r.in.used.Queries--
		if r.bytes != nil {
			r.in.used.Bytes -= *r.bytes
		}
	case e.Bytes != nil:
		r.in.used.Bytes += *e.Bytes
		if r.bytes != nil {
			r.in.used.Bytes -= *r.bytes
		}
	}
	if e.ExecMs != nil {
		r.in.used.ExecMs += *e.ExecMs
	}
}

func (t *Tenants) drop(taskID string, r *run) {
	delete(t.runs, taskID)
	delete(t.before, taskID)
	t.ended[taskID] = End{TaskID: taskID, counted: true}
	a := t.all[r.tenant]
	a.running--
	if a.clusters[r.cluster]--; a.clusters[r.cluster] == 0 {
		delete(a.clusters, r.cluster)
	}
	if r.principal == "" {
		return
	}
	if a.principals[r.principal]--; a.principals[r.principal] == 0 {
		delete(a.principals, r.principal)
	}
}

// ending finds a Task that has ended, counted or not.
func (t *Tenants) ending(taskID string) (End, bool) {
	if e, ok := t.ended[taskID]; ok {
		return e, true
	}
	e, ok := t.before[taskID]
	return e, ok
}

func (t *Tenants) tenant(name string) *tenant {
	a := t.all[name]
	if a == nil {
		a = &tenant{principals: map[string]int64{}, clusters: map[string]int64{}}
		t.all[name] = a
	}
	return a
}

func (a *tenant) slice(at time.Time, window time.Duration) *slice {
	width := window / parts
	start := at.Truncate(width)
	i := len(a.slices)
	for ; i > 0 && !a.slices[i-1].start.Before(start); i-- {
		if s := a.slices[i-1]; s.start.Equal(start) && s.width == width {
			return s
		}
	}
	s := &slice{start: start, width: width}
	a.slices = append(a.slices, nil)
	copy(a.slices[i+1:], a.slices[i:])
	a.slices[i] = s
	return s
}

// Account is what a tenant has used in a window up to now. taskID is the Task that asks.
func (t *Tenants) Account(tenantName, principal, taskID string, window time.Duration, now time.Time) TenantAccount {
	out := TenantAccount{WindowMs: window.Milliseconds(), Admitted: t.Knows(taskID)}
	a := t.all[tenantName]
	if a == nil {
		return out
	}
	out.Running, out.PrincipalRunning = a.running, a.principals[principal]
	if len(a.clusters) > 0 {
		out.Clusters = maps.Clone(a.clusters)
	}
	for _, s := range a.slices {
		leaves := s.start.Add(s.width + window)
		if !leaves.After(now) || s.used == (Slice{}) {
			continue
		}
		used := s.used
		used.Leaves = leaves.UTC()
		out.Slices = append(out.Slices, used)
	}
	return out
}

// Over is by how much a tenant, or one of its principals, is over its limits now: what routers have let in that could not know of
// each other's decisions yet. Nothing is below 0.
func (t *Tenants) Over(tenantName, principal string, l TenantLimits, mostOfPrincipal int64, now time.Time) (queries, bytes, running, concurrent int64) {
	over := func(used, most int64) int64 {
		if most == 0 {
			return 0
		}
		return max(0, used-most)
	}
	a := t.Account(tenantName, principal, "", l.Window, now)
	total := a.Total()
	if principal != "" {
		concurrent = over(a.PrincipalRunning, mostOfPrincipal)
	}
	return over(total.Queries, l.MaxQueries), over(total.Bytes, l.MaxBytes), over(a.Running, l.MaxConcurrent), concurrent
}

// Forget drops what no account can show any more: slices that have left the longest window, Tasks whose end nobody has told of and
// that can't run any longer, so that no slot is lost for ever, and Tasks that ended a while ago.
func (t *Tenants) Forget(window time.Duration, now time.Time) {
	for id, r := range t.runs {
		if now.After(r.deadline.Add(grace)) {
			t.drop(id, r)
		}
	}
	for name, a := range t.all {
		kept := a.slices[:0]
		for _, s := range a.slices {
			if s.start.Add(s.width + window).After(now) {
				kept = append(kept, s)
			}
		}
		clear(a.slices[len(kept):])
		if a.slices = kept; len(kept) == 0 && a.running == 0 {
			delete(t.all, name)
		}
	}
	if now.Sub(t.turned) > remembered {
		t.before, t.ended, t.turned = t.ended, map[string]End{}, now
	}
}

// TenantView is one tenant as people see it.
type TenantView struct {
	Tenant string `json:"tenant"`
	Slice
	Running    int64            `json:"running"`
	Principals map[string]int64 `json:"principals,omitempty"`
}

// Views are the tenants, all or one, by name.
func (t *Tenants) Views(name string, window func(tenant string) time.Duration, now time.Time) []TenantView {
	var out []TenantView
	for _, n := range slices.Sorted(maps.Keys(t.all)) {
		if name != "" && n != name {
			continue
		}
		a := t.Account(n, "", "", window(n), now)
		out = append(out, TenantView{Tenant: n, Slice: a.Total(), Running: a.Running, Principals: maps.Clone(t.all[n].principals)})
	}
	return out
}
