package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// settleTime is how long the outcome is held back for the last changes of its attempt, which another topic carries.
const settleTime = 500 * time.Millisecond

// writeGrace is how long a client may take to read one event, on top of a heartbeat.
const writeGrace = 10 * time.Second

// streamEvents is GET /v1/tasks/{id}/events: what happened so far, then what happens, until the outcome. An id names how
// much of each topic has been seen, so a client may come back with Last-Event-ID to any instance.
func (s *server) streamEvents(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	var cursor board.Cursor
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		var err error
		if cursor, err = board.ParseCursor(last); err != nil {
			bad := problem.New(problem.BadParameter, "Last-Event-ID: "+err.Error())
			bad.Errors = []problem.Field{{Field: "Last-Event-ID", Message: err.Error()}}
			return bad
		}
	}
	view, err := s.find(r, p)
	if err != nil {
		return err
	}
	leave, err := s.enterWaiting(true)
	if err != nil {
		return err
	}
	defer leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	out := &eventWriter{w: w, control: http.NewResponseController(w), patience: s.cfg.HTTP.Heartbeat + writeGrace}
	if err := out.send("retry: 2000\n\n"); err != nil {
		return nil // the client has gone
	}
	return s.follow(r, out, view, cursor)
}

func (s *server) follow(r *http.Request, out *eventWriter, view board.View, cursor board.Cursor) error {
	beat := time.NewTicker(s.cfg.HTTP.Heartbeat)
	defer beat.Stop()
	var settle <-chan time.Time // runs once the outcome is here
	for {
		last := view.Settled()
		if view.Outcome != nil && !last && settle == nil {
			settle = time.After(settleTime)
		}
		if view.Outcome == nil || last {
			if out.events(view, &cursor) != nil || last {
				return nil
			}
		}
		select {
		case <-settle:
			_ = out.events(view, &cursor) // the end of the stream, whether the client took it or not
			return nil
		case <-view.Changed:
			next, presence := s.board.Find(view.TaskID)
			if presence != board.Known {
				return nil // let go of; the client comes back and is told so
			}
			view = next
		case <-beat.C:
			if out.send(": still here\n\n") != nil {
				return nil
			}
		case <-s.stopping:
			return nil // the client comes back, to another instance
		case <-r.Context().Done():
			return nil
		}
	}
}

// eventWriter writes server-sent events, each flushed and within its time.
type eventWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func (o *eventWriter) send(text string) error {
	// Not every connection has deadlines (HTTP/2, tests); a client that hangs is then the server's own to notice.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.patience))
	if _, err := o.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return o.control.Flush()
}

// events writes what the cursor has not seen, and moves it.
func (o *eventWriter) events(view board.View, cursor *board.Cursor) error {
	for _, ev := range view.Since(*cursor) {
		cursor[ev.Topic] = ev.Index
		if err := o.event(*cursor, ev, view); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventWriter) event(cursor board.Cursor, ev board.Event, view board.View) error {
	data := ev.Data
	switch {
	case ev.Topic == board.Outcomes && view.Outcome != nil:
		lean, err := event.Marshal(view.Outcome) // without inline rows: they are at /result
		if err != nil {
			return err
		}
		data = lean
	case bytes.ContainsAny(data, "\r\n"):
		var flat bytes.Buffer // a line break would end the field
		if err := json.Compact(&flat, data); err != nil {
			return err
		}
		data = flat.Bytes()
	}
	return o.send(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", cursor, ev.Name, data))
}
