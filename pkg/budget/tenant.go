package budget

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// TenantLimits bound one tenant. A zero field is no limit.
type TenantLimits struct {
	// Window is the time over which queries and bytes are counted. It moves in twelfths.
	Window        time.Duration
	MaxQueries    int64
	MaxBytes      int64
	MaxConcurrent int64
}

// On reports whether anything is limited.
func (l TenantLimits) On() bool { return l.MaxQueries > 0 || l.MaxBytes > 0 || l.MaxConcurrent > 0 }

// parts is how many slices a window has: what leaves it leaves in parts, so that no more than a few numbers are kept of a tenant.
const parts = 12

// DefaultWindow is the window of a tenant's quota if the policy names none.
const DefaultWindow = time.Hour

// TenantAccount is what a tenant has used when a Task of it came, as far as this router knew.
type TenantAccount struct {
	// Window is what the slices make up together.
	WindowMs int64   `json:"windowMs,omitempty"`
	Slices   []Slice `json:"slices,omitempty"` // oldest first
	// Running counts the tenant's Tasks that were routed and have not ended, PrincipalRunning those of the Task's own batch principal.
	Running          int64 `json:"running"`
	PrincipalRunning int64 `json:"principalRunning,omitempty"`
	// Clusters counts Running by the cluster they were sent to.
	Clusters map[string]int64 `json:"clusters,omitempty"`
	// Admitted says that this Task is counted already: it is a repeat or a later attempt.
	Admitted bool `json:"admitted,omitempty"`
}

// Slice is a part of the window.
type Slice struct {
	// Leaves is when it leaves the window.
	Leaves  time.Time `json:"leaves,omitzero"`
	Queries int64     `json:"queries,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	// ExecMs is the execution time of what ended, ExploredMs the part of it that exploration was expected to cost.
	ExecMs     int64 `json:"execMs,omitempty"`
	ExploredMs int64 `json:"exploredMs,omitempty"`
}

// Total sums the window up.
func (a TenantAccount) Total() (s Slice) {
	for _, x := range a.Slices {
		s.Queries += x.Queries
		s.Bytes += x.Bytes
		s.ExecMs += x.ExecMs
		s.ExploredMs += x.ExploredMs
	}
	return s
}

// Merged is the account with one slice for all: enough where nothing but sums is asked for.
func (a TenantAccount) Merged() TenantAccount {
	if total := a.Total(); total != (Slice{}) {
		a.Slices = []Slice{total}
	}
	return a
}

// Windowed reports whether something is limited within a window.
func (l TenantLimits) Windowed() bool { return l.MaxQueries > 0 || l.MaxBytes > 0 }

// Principal names who a Task runs for as a batch principal; empty for one that is none. A scheduled pipeline says what it is by its
// session's class or by its tag, an agent with that tag is one too.
func Principal(t query.Task) string {
	if t.SessionClass() == query.Batch || t.HasTag("batch") && t.SessionClass() != query.Human {
		return t.Tenant + "/" + t.User
	}
	return ""
}

// CheckTenant says whether a tenant may run one more query, and its batch principal too if mostOfPrincipal is above 0.
func CheckTenant(l TenantLimits, mostOfPrincipal int64, a TenantAccount, ask Ask, now time.Time) *Refusal {
	if mostOfPrincipal > 0 && a.PrincipalRunning >= mostOfPrincipal {
		return slot(Concurrent, "This principal", mostOfPrincipal, a.PrincipalRunning, ask, now)
	}
	if l.MaxConcurrent > 0 && a.Running >= l.MaxConcurrent {
		return slot(TenantConcurrent, "This tenant", l.MaxConcurrent, a.Running, ask, now)
	}
	total := a.Total()
	rest := map[string]signal.Value{
		"queries": left(l.MaxQueries, total.Queries, signal.Count, now), "bytes": left(l.MaxBytes, total.Bytes, signal.Bytes, now),
	}
	window := l.Window.String()
	if l.MaxQueries > 0 && total.Queries >= l.MaxQueries {
		at, _ := frees(a.Slices, total.Queries+1-l.MaxQueries, func(s Slice) int64 { return s.Queries })
		r := answer(TenantQueries, fmt.Sprintf("This tenant has used all %s that it may run in %s.", many(l.MaxQueries, "query", "queries"), window),
			again(at, now), rest, ask.estimate(), "limit", strconv.FormatInt(l.MaxQueries, 10), "window", window)
		r.RetryAfterSeconds = seconds(at.Sub(now))
		return r
	}
	n, known := ask.Bytes.Last()
	if l.MaxBytes > 0 && (total.Bytes >= l.MaxBytes || known && total.Bytes+WholeBytes(n) > l.MaxBytes) {
		free := max(0, l.MaxBytes-total.Bytes)
		asks := "what this query would scan is not known"
		if known {
			asks = "this query would scan about " + humanBytes(WholeBytes(n))
		}
		need := max(1, WholeBytes(n))
		at, fits := frees(a.Slices, total.Bytes+need-l.MaxBytes, func(s Slice) int64 { return s.Bytes })
		suggestion := ask.smaller(free)
		if fits && free == 0 {
			suggestion = again(at, now)
		} else if fits {
			suggestion += " " + again(at, now)
		}
		r := answer(TenantBytes,
			fmt.Sprintf("This tenant has %s left of the %s that it may scan in %s, and %s.", humanBytes(free), humanBytes(l.MaxBytes), window, asks),
			suggestion, rest, ask.estimate(), "left", humanBytes(free), "limit", humanBytes(l.MaxBytes), "window", window, "asks", asks)
		if fits { // a query that is larger than the whole quota never does
			r.RetryAfterSeconds = seconds(at.Sub(now))
		}
		return r
	}
	return nil
}

// slotFrees is how long who has no slot is told to wait. When one frees is not known: it depends on queries that run.
const slotFrees = 5 * time.Second

func slot(code, who string, most, running int64, ask Ask, now time.Time) *Refusal {
	r := answer(code, fmt.Sprintf("%s has %s running, and may have %d at once.", who, many(running, "query", "queries"), most),
		"Wait until one of them has ended, then send it again.",
		map[string]signal.Value{"concurrent": left(most, running, signal.Count, now)}, ask.estimate(),
		"running", strconv.FormatInt(running, 10), "limit", strconv.FormatInt(most, 10))
	r.RetryAfterSeconds = seconds(slotFrees)
	return r
}

// frees is when enough has left the window. ok is false if all of it together is not enough.
func frees(list []Slice, enough int64, of func(Slice) int64) (at time.Time, ok bool) {
	for _, s := range list {
		at = s.Leaves
		if enough -= of(s); enough <= 0 {
			return at, true
		}
	}
	return at, false
}

func again(at, now time.Time) string {
	return fmt.Sprintf("There is room again in %s.", max(time.Second, at.Sub(now).Round(time.Second)))
}
