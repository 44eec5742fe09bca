package policy

import (
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
)

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
}

var sessionBudgetOptions = []option[budget.Limits]{
	countOption("max_queries", "Queries of the session.", 1, 1e12, func(l *budget.Limits) *int64 { return &l.MaxQueries }),
	sizeOption("max_bytes", "Bytes that its queries read.", func(l *budget.Limits) *int64 { return &l.MaxBytes }),
	spanOption("max_wall_ms", "Time that its queries run.", func(l *budget.Limits) *time.Duration { return &l.MaxWall }),
}

var batchPrincipalOptions = []option[Budgets]{
	countOption("max_concurrent", "Queries that run at once.", 1, 1e6, func(b *Budgets) *int { return &b.BatchMaxConcurrent }),
}

func (r *reader) budgets(section field) Budgets {
	var out Budgets
	readOptions(r, section, "the budgets", budgetOptions, &out)
	return out
}
