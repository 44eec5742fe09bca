package route

import (
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/shape"
)

// wholeTables is the source of estimates that count whole tables and look at no condition: those of the folder catalog.
const wholeTables = "catalog"

// admission says whether the tenant and the session may run one more query: quotas first, which are cheap and concern everybody,
// then the session's loops and budget. A Task that was admitted is not looked at again, whatever has been used since: a repeat must
// not be refused. One that its session's account has refused gets the same answer again.
func admission(in *Input, tables []string) (event.Reason, *event.Rejection) {
	if s := in.Session; s != nil && s.Refused != nil {
		return event.Reason{Code: s.Refused.Code, Text: s.Refused.Message}, s.Refused
	}
	if in.Attempt > 1 || in.Session != nil && in.Session.Admitted {
		return event.Reason{}, nil
	}
	refusal := overQuota(in, tables)
	if l := in.limits(); l != nil && refusal == nil {
		refusal = budget.Check(*l, *in.Session, asked(in, tables), in.Now)
	}
	if refusal == nil {
		return event.Reason{}, nil
	}
	return NewReason(Code(refusal.Code), refusal.Args...), &refusal.Rejection
}

func overQuota(in *Input, tables []string) *budget.Refusal {
	if in.Tenant == nil || in.Tenant.Admitted {
		return nil
	}
	b := &in.Policy.Budgets
	l, most := b.OfTenant(in.Task.Tenant), int64(0)
	if budget.Principal(in.Task) != "" {
		most = int64(b.BatchMaxConcurrent)
	}
	if !l.On() && most == 0 {
		return nil
	}
	return budget.CheckTenant(l, most, *in.Tenant, asked(in, tables), in.Now)
}

// asked is the query as an answer speaks of it.
func asked(in *Input, tables []string) budget.Ask {
	bytes := in.scanBytes()
	return budget.Ask{
		Bytes: bytes, Whole: bytes.Source == wholeTables, Tables: tables, Summaries: in.summaries(tables), Filters: dayRanges(in.Shape.Prunable),
	}
}

// summaries are the summary tables of some tables, with what they scan.
func (in *Input) summaries(tables []string) []budget.Summary {
	var out []budget.Summary
	for _, name := range in.Policy.SummariesOf(tables) {
		out = append(out, budget.Summary{Name: name, Bytes: in.SummaryBytes[name]})
	}
	return out
}

// dayRanges finds the columns that the query limits to a range of days.
func dayRanges(conditions []shape.Predicate) []budget.Filter {
	type column struct{ table, name string }
	type ends struct{ from, to time.Time }
	found := map[column]ends{}
	var order []column
	for _, p := range conditions {
		day, ok := dayOf(p.Value)
		if !ok {
			continue
		}
		c := column{p.Table.String(), p.Column}
		e, seen := found[c]
		switch p.Op {
		case shape.Ge:
			e.from = day
		case shape.Gt:
			e.from = day.AddDate(0, 0, 1)
		case shape.Lt:
			e.to = day
		case shape.Le:
			e.to = day.AddDate(0, 0, 1)
		default:
			continue
		}
		if !seen {
			order = append(order, c)
		}
		found[c] = e
	}
	var out []budget.Filter
	for _, c := range order {
		if e := found[c]; !e.from.IsZero() && e.to.After(e.from) {
			out = append(out, budget.Filter{Table: c.table, Column: c.name, Days: int(e.to.Sub(e.from).Hours() / 24)})
		}
	}
	return out
}

// dayOf reads the day of a date, or of a time at midnight.
func dayOf(v shape.Value) (time.Time, bool) {
	if !v.IsText() {
		return time.Time{}, false
	}
	text, rest, _ := strings.Cut(strings.TrimSpace(v.String()), " ")
	if strings.Trim(rest, "0:.") != "" {
		return time.Time{}, false
	}
	day, err := time.Parse(time.DateOnly, text)
	return day, err == nil
}
