package intake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// Links are where a task's parts are.
type Links struct {
	Self   string `json:"self"`
	Events string `json:"events"`
	Result string `json:"result"`
}

// Accepted is the answer to a request that was taken in and has not ended.
type Accepted struct {
	TaskID string `json:"taskId"`
	State  string `json:"state"`
	Links  Links  `json:"links"`
}

// TaskAnswer is all that is known of a task.
type TaskAnswer struct {
	TaskID          string     `json:"taskId"`
	State           string     `json:"state"`
	Tenant          string     `json:"tenant,omitempty"`
	User            string     `json:"user,omitempty"`
	SubmittedAt     *time.Time `json:"submittedAt,omitempty"`
	CancelRequested bool       `json:"cancelRequested"`
	// Task is the request; Decision the newest decision, EarlierDecisions those before it, oldest first. A wish to cancel that was
	// passed on is CancelRequested, and a decision only if there is no other.
	Task             json.RawMessage   `json:"task,omitempty"`
	Decision         json.RawMessage   `json:"decision,omitempty"`
	EarlierDecisions []json.RawMessage `json:"earlierDecisions,omitempty"`
	// Attempts has the newest change of each attempt, in order of number.
	Attempts []event.Attempt `json:"attempts,omitempty"`
	Outcome  *event.Outcome  `json:"outcome,omitempty"`
	Links    Links           `json:"links"`
}

// rowsToo says whether an answer carries the inline rows of a result, which may be a megabyte.
type rowsToo bool

const (
	withRows    rowsToo = true
	withoutRows rowsToo = false
)

func taskAnswer(v board.View, withRows rowsToo) TaskAnswer {
	a := TaskAnswer{
		TaskID: v.TaskID, State: v.State, Tenant: v.Tenant, User: v.User, SubmittedAt: v.SubmittedAt, CancelRequested: v.Cancelled,
		Task: v.Task, Outcome: v.Outcome, Links: linksOf(v.TaskID),
	}
	var wish json.RawMessage // a wish to cancel is passed on as a decision, and tells nothing of where the Task went
	for _, ev := range v.Of(board.Decisions) {
		var d struct {
			Kind event.DecisionKind `json:"kind"`
		}
		if json.Unmarshal(ev.Data, &d) == nil && d.Kind == event.PassCancel {
			wish = ev.Data
			continue
		}
		if a.Decision != nil {
			a.EarlierDecisions = append(a.EarlierDecisions, a.Decision)
		}
		a.Decision = ev.Data
	}
	if a.Decision == nil {
		a.Decision = wish
	}
	place := map[string]int{}
	for _, ev := range v.Of(board.Attempts) {
		var change event.Attempt
		if json.Unmarshal(ev.Data, &change) != nil {
			continue // it was decoded before it got here
		}
		change.Decision = nil // a reroute carries the decision along; it is in the answer once
		i, seen := place[change.AttemptID]
		switch {
		case !seen:
			place[change.AttemptID] = len(a.Attempts)
			a.Attempts = append(a.Attempts, change)
		case change.Seq > a.Attempts[i].Seq:
			a.Attempts[i] = change
		}
	}
	if withRows {
		for _, ev := range v.Of(board.Outcomes) {
			var full event.Outcome
			if json.Unmarshal(ev.Data, &full) == nil {
				a.Outcome = &full
			}
		}
	}
	return a
}

func taskPath(id string) string { return "/v1/tasks/" + id }

func linksOf(id string) Links {
	return Links{Self: taskPath(id), Events: taskPath(id) + "/events", Result: taskPath(id) + "/result"}
}

// find returns what is known of the task that a request is about, if its caller may know. Who may not is told the same as
// of a task that never was.
func (s *server) find(r *http.Request, p access.Principal) (board.View, error) {
	id := r.PathValue("id")
	view, presence := s.board.Find(id)
	switch {
	case presence == board.Known && p.Sees(view.Tenant):
		return view, nil
	case presence == board.Forgotten && p.Sees(view.Tenant):
		return view, problem.New(problem.TaskExpired, "the task is over, or has been silent for long; its history is in ClickHouse").About(id)
	case presence == board.Unknown && !s.caughtUp():
		return view, problem.New(problem.CatchingUp, "this instance is still reading what happened before it started").After(retrySoon)
	case presence == board.Unknown && s.beyondLookBack(id):
		return view, problem.New(problem.TaskExpired, "the task is older than what is kept here; its history is in ClickHouse")
	default:
		return view, problem.New(problem.UnknownTask, fmt.Sprintf("no task %q was seen in the last %s", short(id), s.cfg.Tasks.LookBack))
	}
}

// beyondLookBack says whether an id was made by an intake before the time that is looked back to: ids that are ULIDs tell
// when they were made.
func (s *server) beyondLookBack(id string) bool {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return false
	}
	return s.now().Sub(ulid.Time(u.Time())) > min(s.cfg.Tasks.LookBack, s.cfg.Tasks.KeepFor)
}

// getTask is GET /v1/tasks/{id}.
func (s *server) getTask(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	view, err := s.find(r, p)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, taskAnswer(view, withoutRows))
}

// cancelTask is DELETE /v1/tasks/{id}. It writes a wish to cancel behind the Task, under the same key; what comes of it is
// the router's and the executor's.
func (s *server) cancelTask(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	view, err := s.find(r, p)
	if err != nil {
		return err
	}
	if err := s.limit(view.Tenant); err != nil {
		return err
	}
	switch {
	case view.Outcome != nil:
		return problem.New(problem.AlreadyEnded, "it ended as "+string(view.Outcome.Status)).About(view.TaskID)
	case view.Key == "":
		return problem.New(problem.TaskExpired, "the request itself is older than what is kept here, so it can't be cancelled any more").About(view.TaskID)
	case !view.Cancelled:
		user := p.User
		if user == "" {
			user = view.User
		}
		data, err := event.Marshal(event.Cancel{TaskID: view.TaskID, Tenant: view.Tenant, User: user, Reason: short(r.URL.Query().Get("reason"))})
		if err != nil {
			return err
		}
		if err := s.write(r.Context(), stream.Message{
			Topic: event.TopicRequests, Key: view.Key, Type: event.CancelRequested, ID: view.TaskID + "/cancel", Subject: view.TaskID,
			Time: s.now().UTC(), Data: data,
		}, view.TaskID); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusAccepted, Accepted{TaskID: view.TaskID, State: view.State, Links: linksOf(view.TaskID)})
}

// maxShown bounds what is repeated of a caller's text.
const maxShown = 200

func short(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}

// writeJSON sends an answer. It is encoded first, so that what can't be is still a problem and no broken body.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	data, err := event.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client has gone: nobody to tell
	return nil
}
