package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/query"
)

// Budgets are the limits of principals by class.
type Budgets struct {
	AgentSession *budget.Limits
	// BatchMaxConcurrent caps the running queries of one batch principal; zero means no cap.
	BatchMaxConcurrent int
	// Tenant limits every tenant that is not in Tenants.
	Tenant  budget.TenantLimits
	Tenants map[string]budget.TenantLimits
}

// OfSession returns the limits of a Task's session, nil when it has none.
func (b *Budgets) OfSession(t query.Task) *budget.Limits {
	if t.SessionID() == "" || t.SessionClass() != query.Agent {
		return nil
	}
	return b.AgentSession
}

// OfTenant returns the limits of a tenant.
func (b *Budgets) OfTenant(tenant string) budget.TenantLimits {
	if l, ok := b.Tenants[tenant]; ok {
		return l
	}
	return b.Tenant
}

// Quotas reports whether any tenant or batch principal is limited, so that somebody has to count. window is the longest one.
func (b *Budgets) Quotas() (window time.Duration, on bool) {
	on = b.BatchMaxConcurrent > 0 || b.Tenant.On()
	window = b.Tenant.Window
	for _, l := range b.Tenants {
		on = on || l.On()
		window = max(window, l.Window)
	}
	return max(window, budget.DefaultWindow), on
}

var budgetOptions = []option[Budgets]{
	{
		key: "agent_session", about: "What one session of an agent may use.",
		form: mappingForm("a session budget", describe(sessionBudgetOptions)),
		read: func(r *reader, f field, into *Budgets) {
			into.AgentSession = &budget.Limits{}
			readOptions(r, f, "a session budget", sessionBudgetOptions, into.AgentSession)
		},
	},
	{
		key: "batch_principal", about: "What one batch principal may use.",
		form: mappingForm("a batch principal's budget", describe(batchPrincipalOptions)),
		read: func(r *reader, f field, into *Budgets) {
			readOptions(r, f, "a batch principal's budget", batchPrincipalOptions, into)
		},
	},
	{
		key: "tenant", about: "What every tenant may use that `tenants` does not name.",
		form: mappingForm("a tenant's quota", describe(tenantQuotaOptions)),
		read: func(r *reader, f field, into *Budgets) { into.Tenant = r.tenantQuota(f, budget.TenantLimits{}) },
	},
	{
		key: "tenants", about: "What single tenants may use, by name. A key that is left out is as in `tenant`.",
		form: form{name: "tenants' quotas by name", schema: map[string]any{
			"type": "object", "additionalProperties": schemaOf(describe(tenantQuotaOptions)),
		}},
		read: func(r *reader, f field, _ *Budgets) { r.tenants = &f }, // it is read after `tenant`, wherever that stands
	},
}

var sessionBudgetOptions = []option[budget.Limits]{
	countOption("max_queries", "Queries of the session.", 1, 1e12, func(l *budget.Limits) *int64 { return &l.MaxQueries }),
	sizeOption("max_bytes", "Bytes that its queries read.", func(l *budget.Limits) *int64 { return &l.MaxBytes }),
	spanOption("max_wall_ms", "Time that its queries run.", func(l *budget.Limits) *time.Duration { return &l.MaxWall }),
	countOption("max_repeats", "How often it may run one and the same query.", 1, 200, func(l *budget.Limits) *int64 { return &l.MaxRepeats }),
	countOption("max_growing", "How many queries in a row over the same tables may each scan more than the one before.", 2, 200,
		func(l *budget.Limits) *int64 { return &l.MaxGrowing }),
}

var batchPrincipalOptions = []option[Budgets]{
	countOption("max_concurrent", "Queries that run at once.", 1, 1e6, func(b *Budgets) *int { return &b.BatchMaxConcurrent }),
}

var tenantQuotaOptions = []option[budget.TenantLimits]{
	spanOption("window_seconds", "The time over which queries and bytes are counted.",
		func(l *budget.TenantLimits) *time.Duration { return &l.Window }).withDefault("3600"),
	countOption("max_queries", "Queries in the window.", 1, 1e12, func(l *budget.TenantLimits) *int64 { return &l.MaxQueries }),
	sizeOption("max_bytes", "Bytes that the window's queries read.", func(l *budget.TenantLimits) *int64 { return &l.MaxBytes }),
	countOption("max_concurrent", "Queries that run at once.", 1, 1e6, func(l *budget.TenantLimits) *int64 { return &l.MaxConcurrent }),
}

// shortestWindow keeps a slice of a window longer than what routers' clocks and the log's delay make of it.
const shortestWindow = 10 * time.Second

func (r *reader) tenantQuota(f field, base budget.TenantLimits) budget.TenantLimits {
	l := base
	if l.Window == 0 {
		l.Window = budget.DefaultWindow
	}
	readOptions(r, f, "a tenant's quota", tenantQuotaOptions, &l)
	if l.Window < shortestWindow {
		r.fault(f.keyNode, f.path+".window_seconds", fmt.Sprintf("must be at least %g", shortestWindow.Seconds()))
	}
	return l
}

func (r *reader) budgets(section field) Budgets {
	var out Budgets
	readOptions(r, section, "the budgets", budgetOptions, &out)
	if r.tenants == nil {
		return out
	}
	out.Tenants = map[string]budget.TenantLimits{}
	for _, f := range r.mapping(r.tenants.path, r.tenants.value) {
		out.Tenants[f.key] = r.tenantQuota(f, out.Tenant)
	}
	return out
}

// summaries are the summary tables of tables.
func (r *reader) summaries(section field) map[string][]string {
	out := map[string][]string{}
	for _, f := range r.mapping(section.path, section.value) {
		out[strings.ToLower(f.key)] = r.words(f)
	}
	return out
}

// SummariesOf returns the summary tables of some tables. A name without a schema stands for the table in any.
func (p *Policy) SummariesOf(tables []string) []string {
	if len(p.Summaries) == 0 {
		return nil
	}
	var out []string
	for _, t := range tables {
		t = strings.ToLower(t)
		list, ok := p.Summaries[t]
		if !ok {
			list = p.Summaries[t[strings.LastIndexByte(t, '.')+1:]]
		}
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
