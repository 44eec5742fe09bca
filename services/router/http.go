package router

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// maxExplainBody bounds what POST /v1/explain reads; a Task's own limits are checked after that.
const maxExplainBody = 8 << 20

// handler serves POST /v1/explain: decide, don't run. It is for intake and for operators, not for the outside.
func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/explain", a.explain)
	mux.HandleFunc("GET /v1/budgets", a.budgets)
	return mux
}

func (a *App) explain(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxExplainBody))
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		problem(w, status, "the request could not be read: "+err.Error())
		return
	}
	var t query.Task
	if err := json.Unmarshal(body, &t); err != nil {
		problem(w, http.StatusBadRequest, query.DescribeJSONError(err))
		return
	}
	if err := t.Validate(a.cfg.Limits.limits()); err != nil {
		status := http.StatusUnprocessableEntity
		if errors.Is(err, query.ErrTooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		problem(w, status, strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	if t.ID == "" {
		t.ID = "explain"
	}
	if t.SubmittedAt == nil {
		now := time.Now().UTC()
		t.SubmittedAt = &now
	}
	e := a.decider.explain(r.Context(), t, a.accountOf(t))
	if strings.Contains(r.Header.Get("Accept"), "text/plain") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, e.Text)
		return
	}
	data, err := event.Marshal(e)
	if err != nil {
		problem(w, http.StatusInternalServerError, "the explanation could not be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}

// problem answers in the form of RFC 9457.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}
