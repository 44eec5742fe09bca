package budget

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The codes of a refusal. Their templates, and the page about them, are pkg/route's.
const (
	QueriesExhausted = "session_query_budget"
	BytesExhausted   = "session_byte_budget"
	WallExhausted    = "session_time_budget"
	LoopRepeats      = "session_loop_repeats"
	LoopGrows        = "session_loop_grows"
	TenantQueries    = "tenant_quota_queries"
	TenantBytes      = "tenant_quota_bytes"
	TenantConcurrent = "tenant_quota_concurrency"
	Concurrent       = "concurrency_quota"
)

// Refusal is the answer of a limit: what a person or a model is told, and the arguments of the reason's template.
type Refusal struct {
	event.Rejection
	Args []string
}

// Ask is the query that asks, as far as an answer speaks of it.
type Ask struct {
	// Bytes is the estimate of what it scans. Whole says that it counts whole tables, so that a filter does not lower it.
	Bytes signal.Value
	Whole bool
	// Tables are those it reads, as it names them. Summaries are the summary tables of them that the policy knows.
	Tables    []string
	Summaries []Summary
	// Filters are conditions on its tables that can prune its scan.
	Filters []Filter
}

// Summary is a table that sums another one up.
type Summary struct {
	Name string
	// Bytes is what reading the whole of it scans, absent when nobody knows.
	Bytes signal.Value
}

// Filter is a condition on a column that can prune a scan.
type Filter struct {
	Table, Column string
	// Days is how many days a range of dates holds; 0 when it is no range of dates, or one of its ends is open.
	Days int
}

// answer makes the message of its parts: what is the matter, and what to do.
func answer(code, message, suggestion string, left, estimate map[string]signal.Value, args ...string) *Refusal {
	for _, m := range []map[string]signal.Value{left, estimate} {
		maps.DeleteFunc(m, func(_ string, v signal.Value) bool { return v.State() == signal.Absent })
	}
	r := event.Rejection{Code: code, Message: message, Suggestion: suggestion, Left: left, Estimate: estimate}
	if suggestion != "" {
		r.Message += " " + suggestion
	}
	return &Refusal{Rejection: r, Args: args}
}

func (a Ask) estimate() map[string]signal.Value { return map[string]signal.Value{"scanBytes": a.Bytes} }

// smaller is the smallest change of the query that scans no more than is left: a narrower filter, or a summary table. It names
// numbers only where they follow from the estimate.
func (a Ask) smaller(left int64) string {
	var parts []string
	f, days, ranged := a.narrower(left)
	share, partly := a.share(left)
	switch {
	case left <= 0:
	case a.Whole && partly:
		parts = append(parts, fmt.Sprintf("query a table of at most %s (the estimate counts whole tables, so a filter does not lower it)", humanBytes(left)))
	case ranged:
		parts = append(parts, fmt.Sprintf("filter %s to at most %d of %d days", f.Column, days, f.Days))
	case partly:
		parts = append(parts, fmt.Sprintf("add a filter that leaves at most %s of %s", share, a.table()))
	default:
		parts = append(parts, fmt.Sprintf("add a narrower filter on %s, so that it scans at most %s", a.table(), humanBytes(left)))
	}
	if summaries := a.fitting(left); len(summaries) > 0 {
		parts = append(parts, "query "+strings.Join(summaries, " or ")+" instead, which is a summary")
	}
	if len(parts) == 0 {
		return "Nothing is left that a query could scan. Summarise what you have."
	}
	text := strings.Join(parts, ", or ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// fitting are the summaries that scan no more than is left, the smallest first, and behind them those of unknown size.
func (a Ask) fitting(left int64) []string {
	list := slices.Clone(a.Summaries)
	slices.SortStableFunc(list, func(x, y Summary) int {
		return cmp.Compare(x.size(), y.size())
	})
	var out []string
	for _, s := range list {
		switch n, known := s.Bytes.Last(); {
		case !known:
			out = append(out, s.Name)
		case n <= float64(left):
			out = append(out, s.Name+" ("+humanBytes(WholeBytes(n))+")")
		}
	}
	return out
}

// size orders what is not known behind all that is.
func (s Summary) size() float64 {
	if n, known := s.Bytes.Last(); known {
		return n
	}
	return math.Inf(1)
}

// narrower finds a range of days that can be cut so that the query fits, if its bytes are spread evenly over them.
func (a Ask) narrower(left int64) (f Filter, days int, ok bool) {
	bytes, known := a.Bytes.Last()
	i := slices.IndexFunc(a.Filters, func(f Filter) bool { return f.Days > 1 })
	if !known || bytes <= 0 || left <= 0 || i < 0 {
		return f, 0, false
	}
	f = a.Filters[i]
	days = int(math.Floor(float64(f.Days) * float64(left) / bytes))
	return f, days, days >= 1 && days < f.Days
}

// share is what is left as a part of what it would scan.
func (a Ask) share(left int64) (string, bool) {
	bytes, known := a.Bytes.Last()
	if !known || bytes <= 0 || left <= 0 || float64(left) >= bytes {
		return "", false
	}
	percent := 100 * float64(left) / bytes
	if percent < 1 {
		return fmt.Sprintf("%s (%.2g %%)", humanBytes(left), percent), true
	}
	return fmt.Sprintf("%s (%d %%)", humanBytes(left), int(percent)), true
}

func (a Ask) table() string {
	switch len(a.Tables) {
	case 0:
		return "its tables"
	case 1:
		return a.Tables[0]
	case 2, 3, 4, 5:
		return "the largest of " + strings.Join(a.Tables, ", ")
	default:
		return fmt.Sprintf("the largest of its %d tables", len(a.Tables))
	}
}

// humanBytes is a number of bytes for people.
func humanBytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n), -1
	for v >= 999.95 && u < len(units)-1 {
		v /= 1000
		u++
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}

// seconds rounds a wait up, so that who comes back then does not come too early.
func seconds(d time.Duration) *int64 {
	n := max(1, int64(math.Ceil(d.Seconds())))
	return &n
}
