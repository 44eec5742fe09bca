package intake

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// How many tasks a list has when its caller names no number, and at most.
const (
	defaultListed = 50
	mostListed    = 1000
)

// stateOpen asks for all Tasks that have not ended.
const stateOpen = "open"

// TaskSummary is a task in a list.
type TaskSummary struct {
	TaskID      string     `json:"taskId"`
	State       string     `json:"state"`
	Tenant      string     `json:"tenant,omitempty"`
	User        string     `json:"user,omitempty"`
	SubmittedAt *time.Time `json:"submittedAt,omitempty"`
	ChangedAt   time.Time  `json:"changedAt"`
	Engine      string     `json:"engine,omitempty"`
	Cluster     string     `json:"cluster,omitempty"`
	Attempts    int        `json:"attempts"`
	TotalMs     *int64     `json:"totalMs,omitempty"`
	SLAHit      *bool      `json:"slaHit,omitempty"`
}

// TaskList is some of the tasks that this instance knows of.
type TaskList struct {
	Tasks []TaskSummary `json:"tasks"`
	// More says that there are others which fit.
	More bool `json:"more"`
}

// listTasks is GET /v1/tasks: the tasks that are kept here and that the caller may know of, the one that changed last first. What
// is older is in ClickHouse.
func (s *server) listTasks(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	q := r.URL.Query()
	limit := defaultListed
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostListed {
			bad := problem.New(problem.BadParameter, "limit must be a number from 1 to "+strconv.Itoa(mostListed))
			bad.Errors = []problem.Field{{Field: "limit", Message: bad.Detail}}
			return bad
		}
		limit = n
	}
	open := q.Get("state") == stateOpen
	if state := q.Get("state"); state != "" && !open && !slices.Contains(board.States(), state) {
		bad := problem.New(problem.BadParameter, fmt.Sprintf("no task is ever %q; the states are %s, and %s for all that have not ended",
			short(state), strings.Join(board.States(), ", "), stateOpen))
		bad.Errors = []problem.Field{{Field: "state", Message: bad.Detail}}
		return bad
	}
	if !s.caughtUp() {
		return problem.New(problem.CatchingUp, "this instance is still reading what happened before it started").After(retrySoon)
	}
	fits := func(want, have string) bool { return want == "" || want == have }
	list, more := s.board.List(limit, func(t board.Summary) bool {
		state := fits(q.Get("state"), t.State) || (open && t.TotalMs == nil)
		return p.Sees(t.Tenant) && state && fits(q.Get("tenant"), t.Tenant) && fits(q.Get("user"), t.User) && fits(q.Get("cluster"), t.Cluster)
	})
	out := TaskList{Tasks: make([]TaskSummary, 0, len(list)), More: more}
	for _, t := range list {
		out.Tasks = append(out.Tasks, TaskSummary{
			TaskID: t.TaskID, State: t.State, Tenant: t.Tenant, User: t.User, SubmittedAt: t.SubmittedAt, ChangedAt: t.ChangedAt.UTC(),
			Engine: t.Engine, Cluster: t.Cluster, Attempts: t.Attempts, TotalMs: t.TotalMs, SLAHit: t.SLAHit,
		})
	}
	return writeJSON(w, http.StatusOK, out)
}
