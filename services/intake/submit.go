package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// retrySoon is said with errors that pass by themselves.
const retrySoon = 2 * time.Second

// submit is POST /v1/queries.
func (s *server) submit(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	wait, err := parseWait(r.URL.Query().Get("wait"), s.cfg.HTTP.MaxWait)
	if err != nil {
		return err
	}
	task, err := s.readTask(w, r, p)
	if err != nil {
		return err
	}
	own, err := identify(&task, r.Header.Get("Idempotency-Key"))
	if err != nil {
		return err
	}
	if err := task.Validate(s.cfg.Requests.limits()); err != nil {
		return problem.OfTask(err)
	}
	leave, err := s.enterWaiting(wait > 0)
	if err != nil {
		return err // before anything is written: the request was not taken in
	}
	defer leave()
	repeat, err := s.take(r.Context(), task, own, p)
	if err != nil {
		return err
	}
	kind := takenNew
	if repeat {
		kind = takenRepeat
		w.Header().Set("Idempotency-Replayed", "true")
	}
	s.metrics.taken.WithLabelValues(kind).Inc()
	view, err := s.await(r.Context(), task.ID, wait)
	if err != nil {
		return err
	}
	w.Header().Set("Location", taskPath(task.ID))
	if view.Outcome != nil {
		return writeJSON(w, http.StatusOK, taskAnswer(view, withRows))
	}
	return writeJSON(w, http.StatusAccepted, Accepted{TaskID: task.ID, State: view.State, Links: linksOf(task.ID)})
}

// readTask reads a Task from a body and stamps it with what the credential says.
func (s *server) readTask(w http.ResponseWriter, r *http.Request, p access.Principal) (query.Task, error) {
	if !p.Anonymous { // before the body is read; anonymous callers say in it who they are
		if err := s.limit(p.Tenant); err != nil {
			return query.Task{}, err
		}
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		// curl -d says that it sends a form unless it is told otherwise; what it sends is looked at, not what it is called.
		if err != nil || (media != "application/json" && media != "application/x-www-form-urlencoded") {
			return query.Task{}, problem.New(problem.UnsupportedMedia, fmt.Sprintf("send Content-Type: application/json, not %q", kind))
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.HTTP.MaxBody)))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return query.Task{}, problem.New(problem.TooLarge, fmt.Sprintf("the body is over the limit of %s; "+
				"load long value lists into a table and join it", s.cfg.HTTP.MaxBody))
		}
		return query.Task{}, problem.New(problem.NotJSON, "the body could not be read to its end").Because(err)
	}
	if !utf8.Valid(body) {
		return query.Task{}, problem.New(problem.NotJSON, "not JSON: the body is not UTF-8")
	}
	var task query.Task
	if err := json.Unmarshal(body, &task); err != nil {
		return query.Task{}, problem.OfJSON(err)
	}
	if p.Anonymous {
		if err := s.limit(task.Tenant); err != nil {
			return query.Task{}, err
		}
	}
	if err := s.gate.Stamp(p, &task); err != nil {
		return query.Task{}, err
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	if at := task.SubmittedAt; at != nil && now.Sub(*at).Abs() > s.cfg.Requests.MaxClockSkew {
		return query.Task{}, problem.OfTask(&query.FieldError{Field: "submittedAt", Message: fmt.Sprintf(
			"is %s off this server's clock (%s); leave it out", now.Sub(*at).Abs().Round(time.Second), now.Format(time.RFC3339))})
	}
	task.SubmittedAt = &now
	return task, nil
}

func (s *server) limit(tenant string) error {
	if ok, after := s.limiter.Allow(tenant, s.now()); !ok {
		return problem.New(problem.RateLimited, "this tenant sends more than its share").After(after)
	}
	return nil
}

// identify gives a Task its id: from tenant and idempotency key, or the request's own, or a new one. own says that the
// caller can know the id of a Task that was sent before.
func identify(t *query.Task, headerKey string) (own bool, err error) {
	headerKey = strings.TrimSpace(headerKey)
	if headerKey != "" && t.IdempotencyKey != "" && headerKey != t.IdempotencyKey {
		return false, problem.OfTask(&query.FieldError{Field: "idempotencyKey", Message: "differs from the Idempotency-Key header"})
	}
	if headerKey != "" {
		t.IdempotencyKey = headerKey
	}
	switch {
	case t.IdempotencyKey != "":
		id := query.IDFromKey(t.Tenant, t.IdempotencyKey)
		if t.ID != "" && t.ID != id {
			return false, problem.OfTask(&query.FieldError{Field: "id", Message: "leave it out: the idempotency key fixes it"})
		}
		t.ID = id
		return true, nil
	case t.ID == "." || t.ID == "..":
		return false, problem.OfTask(&query.FieldError{Field: "id", Message: "would not survive in a path"})
	case t.ID != "":
		return true, nil
	default:
		t.ID = ulid.Make().String()
		return false, nil
	}
}

// take writes a Task unless it is there already. It returns when the broker has acknowledged it and, for an id that may
// have been used before, when the log says that this request was the first under it.
func (s *server) take(ctx context.Context, t query.Task, own bool, p access.Principal) (repeat bool, err error) {
	if own {
		unlock, err := s.ids.lock(ctx, t.ID)
		if err != nil {
			return false, problem.New(problem.Internal, "").Because(errGone)
		}
		defer unlock()
		known, err := s.seenBefore(t, p)
		if known || err != nil {
			return known, err
		}
	}
	raw, err := event.Marshal(t)
	if err != nil {
		return false, problem.OfJSON(err)
	}
	if err := s.write(ctx, stream.Message{
		Topic: event.TopicRequests, Key: t.Key(), Type: event.QueryRequested, ID: t.ID, Subject: t.ID, Time: *t.SubmittedAt, Data: raw,
	}, t.ID); err != nil {
		return false, err
	}
	s.tel.Log.DebugContext(ctx, "task was taken in", telemetry.KeyTask, t.ID, telemetry.KeyTenant, t.Tenant, "sql", telemetry.SQL(t.SQL))
	s.board.Accept(t, raw, s.now())
	if own {
		return false, s.confirm(ctx, t)
	}
	return false, nil
}

// seenBefore says whether this very request is known already.
func (s *server) seenBefore(t query.Task, p access.Principal) (bool, error) {
	view, presence := s.board.Find(t.ID)
	switch {
	case presence == board.Unknown && !s.caughtUp():
		return false, problem.New(problem.CatchingUp, "whether this id or key was used before is not known yet").After(retrySoon).About(t.ID)
	case presence == board.Unknown:
		return false, nil
	case presence == board.Forgotten:
		return false, problem.New(problem.IDConflict, "this id or key was used before, by a task that is not kept any more")
	case view.Digest == "" && !s.caughtUp():
		// An attempt or an outcome of the task was read before its request: what was asked for is about to be known.
		return false, problem.New(problem.CatchingUp, "whether this id or key was used for the same request is not known yet").After(retrySoon).About(t.ID)
	case !p.Sees(view.Tenant):
		return false, problem.New(problem.IDConflict, "this id is in use")
	case view.Digest == "":
		return false, problem.New(problem.IDConflict, "this id or key was used before, by a task whose request is not kept any more").About(t.ID)
	case view.Digest != t.Digest():
		return false, problem.New(problem.IDConflict, "this id or key was used before, for another request").About(t.ID)
	default:
		return true, nil
	}
}

// write sends one event and waits for the acknowledgement. A client that goes away does not call it back: the record is
// on its way.
func (s *server) write(ctx context.Context, m stream.Message, taskID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Requests.ProduceTimeout)
	defer cancel()
	began := time.Now()
	err := s.producer.Send(ctx, m)
	s.metrics.produce.Observe(time.Since(began).Seconds())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stream.ErrTooLarge):
		return problem.New(problem.TooLarge, "the request is larger than a record of the topic may be; "+
			"load long value lists into a table and join it").Because(err)
	case errors.Is(err, stream.ErrUnconfirmed):
		return problem.New(problem.BrokerUnavailable, "the broker did not acknowledge in time; the request may be taken in all the same, "+
			"so ask for the task, or repeat it with an Idempotency-Key").Because(err).After(retrySoon).About(taskID)
	default:
		return problem.New(problem.BrokerUnavailable, "the broker did not take the request").Because(err).After(retrySoon).About(taskID)
	}
}

// confirm waits until the log has said who was first under an id.
func (s *server) confirm(ctx context.Context, t query.Task) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Requests.ConfirmTimeout)
	defer cancel()
	for {
		view, presence := s.board.Find(t.ID)
		switch {
		case presence != board.Known:
			return nil // the board was too small to keep it until it is confirmed; it is written
		case view.Logged && view.Digest != "" && view.Digest != t.Digest():
			return problem.New(problem.IDConflict, "another request under this id or key was first").About(t.ID)
		case view.Logged:
			return nil
		}
		select {
		case <-view.Changed:
		case <-ctx.Done():
			return problem.New(problem.Unconfirmed, "repeat it with the same id or key, and the answer will be certain").
				After(retrySoon).About(t.ID)
		}
	}
}

// await waits for the end of a Task, at most so long, and returns what is known then.
func (s *server) await(ctx context.Context, id string, wait time.Duration) (board.View, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		view, presence := s.board.Find(id)
		if presence != board.Known || view.Outcome != nil || wait <= 0 {
			if view.State == "" {
				view.State = board.StateAccepted
			}
			view.TaskID = id
			return view, nil
		}
		select {
		case <-view.Changed:
		case <-timer.C:
			return view, nil
		case <-s.stopping:
			return view, nil // 202 with the links: the client asks the next instance
		case <-ctx.Done():
			return board.View{}, problem.New(problem.Internal, "").Because(errGone)
		}
	}
}

// parseWait reads ?wait=: a duration such as 30s, or a number of seconds.
func parseWait(text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if seconds, numErr := strconv.ParseUint(text, 10, 31); numErr == nil {
		wait, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || wait < 0 {
		p := problem.New(problem.BadParameter, "wait must be a duration such as 30s, or a number of seconds")
		p.Errors = []problem.Field{{Field: "wait", Message: p.Detail}}
		return 0, p
	}
	return min(wait, most), nil
}

// enterWaiting takes one of the places of those who hold a connection.
func (s *server) enterWaiting(needed bool) (leave func(), err error) {
	if !needed {
		return func() {}, nil
	}
	if !s.waiting.TryAcquire(1) {
		return nil, problem.New(problem.TooManyWaiting, "send it without ?wait= and ask for the task instead").After(retrySoon)
	}
	s.metrics.waiting.Inc()
	return func() { s.metrics.waiting.Dec(); s.waiting.Release(1) }, nil
}
