package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

type tasksTailCmd struct {
	ID string `arg:"" optional:"" help:"The task; without one, what becomes of all of them, a line per change that is seen."`
	taskFilter
	Every  time.Duration `help:"How often to ask for what has changed, without a task." default:"1s"`
	Output string        `help:"text or json (of one task: an event per line)." default:"text" enum:"text,json" short:"o"`
}

// Run follows.
func (t tasksTailCmd) Run(ctx context.Context, s *streams, c *cli) error {
	if t.ID == "" {
		return t.all(ctx, s, c.Tasks.doorFlags)
	}
	last := ""
	for {
		ended, err := t.one(ctx, s, c.Tasks.doorFlags, &last)
		if ended || err != nil {
			return err
		}
		select { // the stream broke off, or its instance is going down: it goes on where it was
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// one follows the events of one task until its outcome. last is the id of the last event that was seen.
func (t tasksTailCmd) one(ctx context.Context, s *streams, door doorFlags, last *string) (ended bool, err error) {
	path := taskPath(t.ID) + "/events"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(door.URL, "/")+path, nil)
	if err != nil {
		return false, fmt.Errorf("making the request: %w", err)
	}
	if door.Token != "" {
		req.Header.Set("Authorization", "Bearer "+door.Token)
	}
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	resp, err := http.DefaultClient.Do(req)
	switch {
	case ctx.Err() != nil:
		return true, nil
	case err != nil && *last == "":
		return false, fmt.Errorf("asking %s (is pointsman up? see --url): %w", door.URL, err)
	case err != nil:
		return false, nil // it was there before
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if resp.StatusCode == http.StatusServiceUnavailable {
			return false, nil // it still reads what happened before it started
		}
		return false, problemOf(resp.Status, answer)
	}
	name := ""
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return ctx.Err() != nil, nil
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch field {
		case "id":
			*last = value
		case "event":
			name = value
		case "data":
			if err := t.event(s, name, []byte(value)); err != nil {
				return false, err
			}
			if name == "outcome" {
				return true, nil
			}
		}
	}
}

// event prints one event.
func (t tasksTailCmd) event(s *streams, name string, data []byte) error {
	if t.Output == "json" {
		_, err := fmt.Fprintf(s.out, `{"event":%q,"data":%s}`+"\n", name, data)
		return err
	}
	text, at := "", time.Time{}
	switch name {
	case "decision":
		var d event.RouteDecision
		if err := json.Unmarshal(data, &d); err != nil {
			return fmt.Errorf("reading a decision: %w", err)
		}
		at, text = d.DecidedAt, decided(d)
	case "attempt":
		var a event.Attempt
		if err := json.Unmarshal(data, &a); err != nil {
			return fmt.Errorf("reading an attempt: %w", err)
		}
		at, text = a.At, fmt.Sprintf("%d %s on %s", a.Number, a.State, place(a))
		if a.Failure != nil {
			text += ": " + a.Failure.Class
		}
		if a.Remedy != "" && a.Remedy != event.RemedyFail {
			text += ", then " + string(a.Remedy)
		}
	case "outcome":
		var o event.Outcome
		if err := json.Unmarshal(data, &o); err != nil {
			return fmt.Errorf("reading an outcome: %w", err)
		}
		at, text = o.FinishedAt, fmt.Sprintf("%s after %s, SLA %s", o.Status, millis(&o.TotalMs), hit(&o.SLAHit))
		if o.Failure != nil {
			text += ": " + strings.TrimSpace(o.Failure.Message+" "+o.Failure.Hint)
		}
		if o.Rejection != nil {
			text += ": " + strings.TrimSpace(o.Rejection.Message+" "+o.Rejection.Suggestion)
		}
	case "accepted":
		var task query.Task
		if err := json.Unmarshal(data, &task); err != nil {
			return fmt.Errorf("reading a task: %w", err)
		}
		if task.SubmittedAt != nil {
			at = *task.SubmittedAt
		}
		text = fmt.Sprintf("from %s of %s", dash(task.User), dash(task.Tenant))
	case "cancel":
		var wish event.Cancel
		if err := json.Unmarshal(data, &wish); err != nil {
			return fmt.Errorf("reading a wish to cancel: %w", err)
		}
		text = fmt.Sprintf("wished by %s: %s", dash(wish.User), dash(wish.Reason))
	}
	when := ""
	if !at.IsZero() {
		when = at.UTC().Format("15:04:05.000")
	}
	_, err := fmt.Fprintf(s.out, "%-12s  %-8s  %s\n", when, printable(name), printable(text))
	return err
}

// all prints a line for each task whose state has changed since it was last asked for.
func (t tasksTailCmd) all(ctx context.Context, s *streams, door doorFlags) error {
	if t.Every < 50*time.Millisecond {
		t.Every = 50 * time.Millisecond
	}
	seen := map[string]listedTask{}
	for round := 0; ; round++ {
		answer, err := door.call(ctx, http.MethodGet, t.query())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		var list struct {
			Tasks []listedTask `json:"tasks"`
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		now := map[string]listedTask{}
		for _, task := range slices.Backward(list.Tasks) {
			now[task.TaskID] = task
			before, known := seen[task.TaskID]
			if round == 0 || (known && before.State == task.State && before.Attempts == task.Attempts) {
				continue // what was there before is what list shows
			}
			if err := t.change(s, task); err != nil {
				return err
			}
		}
		seen = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.Every):
		}
	}
}

func (t tasksTailCmd) change(s *streams, task listedTask) error {
	if t.Output == "json" {
		return json.NewEncoder(s.out).Encode(task)
	}
	_, err := fmt.Fprintf(s.out, "%s  %s  %-16s  %s  attempts %d  %s  SLA %s\n", task.ChangedAt.UTC().Format("15:04:05.000"), printable(task.TaskID),
		printable(task.State), dash(task.Cluster), task.Attempts, millis(task.TotalMs), hit(task.SLAHit))
	return err
}
