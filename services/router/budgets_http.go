package router

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
)

// accountOf looks at the account of a Task's session for an explanation, and changes nothing. It is nil if the session has no budget,
// or its account is with another router.
func (a *App) accountOf(t query.Task) func(*route.Input) *route.SessionAccount {
	if a.decider.policy.Load().Budgets.OfSession(t) == nil {
		return nil
	}
	k := a.keepers.of(t.SessionID())
	if k == nil {
		return nil
	}
	return func(in *route.Input) *route.SessionAccount {
		asks := asking(in)
		var account budget.Account
		if !k.view(func(s *budget.Sessions) { account = s.Batch(in.Now, []budget.Query{asks}, nil).Account(asks) }) {
			return nil
		}
		return &account
	}
}

// viewedMost bounds an answer about all sessions.
const viewedMost = 1000

// budgetsView is what GET /v1/budgets answers.
type budgetsView struct {
	// Partitions are those whose sessions this router keeps; with several routers, the others have the rest.
	Partitions []int32             `json:"partitions"`
	Of         int                 `json:"of"`
	Sessions   []sessionView       `json:"sessions"`
	Tenants    []budget.TenantView `json:"tenants"`
	More       bool                `json:"more,omitempty"`
}

// sessionView is a session with what is left for it.
type sessionView struct {
	budget.View
	Left budget.Left `json:"left"`
}

// budgets answers what sessions and tenants have used, all or by ?tenant= and ?session=.
func (a *App) budgets(w http.ResponseWriter, r *http.Request) {
	tenant, session := r.URL.Query().Get("tenant"), r.URL.Query().Get("session")
	p, now := a.decider.policy.Load(), time.Now().UTC()
	var limits budget.Limits
	if l := p.Budgets.AgentSession; l != nil {
		limits = *l
	}
	out := budgetsView{Partitions: []int32{}, Sessions: []sessionView{}, Of: a.keepers.count()}
	for _, k := range a.keepers.list() {
		if k.view(func(s *budget.Sessions) {
			for _, v := range s.Views(tenant, session) {
				out.Sessions = append(out.Sessions, sessionView{View: v, Left: budget.Remaining(limits, v.Usage, now)})
			}
		}) {
			out.Partitions = append(out.Partitions, k.part.ID)
		}
	}
	slices.Sort(out.Partitions)
	slices.SortFunc(out.Sessions, func(x, y sessionView) int {
		return cmp.Or(y.LastAt.Compare(x.LastAt), cmp.Compare(x.Session, y.Session))
	})
	if len(out.Sessions) > viewedMost {
		out.Sessions, out.More = out.Sessions[:viewedMost], true
	}
	out.Tenants = a.decider.tenants.views(tenant, p, now)
	data, err := json.Marshal(out)
	if err != nil {
		problem(w, http.StatusInternalServerError, "the accounts could not be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}
