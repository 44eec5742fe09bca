package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

type tasksShowCmd struct {
	ID     string `arg:"" help:"The task."`
	Output string `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// shownTask is what the front door says of one task, as far as it is printed.
type shownTask struct {
	TaskID          string                `json:"taskId"`
	State           string                `json:"state"`
	Tenant          string                `json:"tenant"`
	User            string                `json:"user"`
	SubmittedAt     *time.Time            `json:"submittedAt"`
	CancelRequested bool                  `json:"cancelRequested"`
	Task            *query.Task           `json:"task"`
	Decision        *event.RouteDecision  `json:"decision"`
	Earlier         []event.RouteDecision `json:"earlierDecisions"`
	Attempts        []event.Attempt       `json:"attempts"`
	Outcome         *event.Outcome        `json:"outcome"`
}

// Run prints the task.
func (t tasksShowCmd) Run(ctx context.Context, s *streams, c *cli) error {
	answer, err := c.Tasks.call(ctx, http.MethodGet, taskPath(t.ID))
	if err != nil {
		return err
	}
	if t.Output == "json" {
		_, err = s.out.Write(answer)
		return err
	}
	var shown shownTask
	if err := json.Unmarshal(answer, &shown); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return shown.print(s.out)
}

func (t shownTask) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-11s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	line("task", "%s", t.TaskID)
	state := t.State
	if t.CancelRequested && t.Outcome == nil {
		state += " (a cancel is wished)"
	}
	line("state", "%s", state)
	line("tenant", "%s, user %s", dash(t.Tenant), dash(t.User))
	if t.SubmittedAt != nil {
		line("submitted", "%s", t.SubmittedAt.UTC().Format(time.RFC3339Nano))
	}
	if sql := t.statement(); sql != "" {
		line("sql", "%s", sql)
	}
	for _, d := range t.decisions() {
		line("decision", "%s", decided(d))
		for _, r := range d.Reasons {
			line("", "- %s", first(r.Text, r.Code))
		}
	}
	for _, a := range t.Attempts {
		line("attempt "+strconv.Itoa(a.Number), "%s on %s%s", a.State, place(a), spent(a.Stats))
		if f := a.Failure; f != nil && (t.Outcome == nil || t.Outcome.Failure == nil || f.Message != t.Outcome.Failure.Message) {
			line("", "%s: %s", strings.TrimSpace(f.Class+" "+first(f.Name, f.Code)), f.Message)
		}
		if a.Remedy != "" && a.Remedy != event.RemedyFail {
			next := ""
			if a.Next != nil {
				next = " to " + strings.TrimSuffix(a.Next.Cluster+"/"+a.Next.Resource, "/")
			}
			line("", "then: %s%s", a.Remedy, next)
		}
	}
	if o := t.Outcome; o != nil {
		line("outcome", "%s after %s with %s; SLA %s: %s", o.Status, millis(&o.TotalMs), count(o.Attempts, "attempt"), millis(&o.SLAMs), hit(&o.SLAHit))
		if f := o.Failure; f != nil {
			line("", "%s: %s", strings.TrimSpace(f.Class+" "+first(f.Name, f.Code)), f.Message)
			if f.Hint != "" {
				line("", "%s", f.Hint)
			}
		}
		if r := o.Rejection; r != nil {
			line("", "%s: %s %s", r.Code, r.Message, r.Suggestion)
		}
		if r := o.Result; r != nil {
			line("result", "%s, %s, %s%s", count(r.Rows, "row"), count(r.Bytes, "byte"), r.Format, map[bool]string{true: ", cut short"}[r.Truncated])
		}
	}
	return w.Flush()
}

// statement is what is run, or the intent that it is made of.
func (t shownTask) statement() string {
	task := t.Task
	if task == nil && t.Decision != nil {
		task = t.Decision.Task
	}
	if task == nil {
		return ""
	}
	return first(task.SQL, string(task.Intent))
}

// decisions are all of them, in their order.
func (t shownTask) decisions() []event.RouteDecision {
	if t.Decision == nil {
		return nil
	}
	return append(slices.Clone(t.Earlier), *t.Decision)
}

// decided says what a decision is, in a line.
func decided(d event.RouteDecision) string {
	switch d.Kind {
	case event.PassCancel:
		return "the wish to cancel is passed on"
	case event.Reject:
		return fmt.Sprintf("%s attempt %d by rule %s, verdict %s", d.Kind, d.Attempt, dash(d.Rule), dash(d.Verdict))
	default:
		return fmt.Sprintf("%s attempt %d to %s by rule %s, verdict %s", d.Kind, d.Attempt, dash(d.Cluster), dash(d.Rule), dash(d.Verdict))
	}
}

// place says where an attempt is: on which cluster, and in what of it.
func place(a event.Attempt) string {
	var parts []string
	for _, p := range []struct{ name, is string }{{"queue", a.Queue}, {"resources", a.Resource}} {
		if p.is != "" {
			parts = append(parts, p.name+" "+p.is)
		}
	}
	if a.QueuePosition > 0 {
		parts = append(parts, fmt.Sprintf("place %d in its executor's line", a.QueuePosition))
	}
	if a.WaitsFor != "" {
		parts = append(parts, "waits: "+printable(a.WaitsFor))
	}
	if len(parts) == 0 {
		return dash(a.Cluster)
	}
	return dash(a.Cluster) + " (" + strings.Join(parts, ", ") + ")"
}

// count is a number of things.
func count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// spent says what an attempt took, as far as it is known.
func spent(s *event.Stats) string {
	if s == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		name string
		ms   *int64
	}{{"queue", s.QueueMs}, {"start", s.AcquireMs}, {"run", s.ExecMs}, {"deliver", s.DeliverMs}} {
		if p.ms != nil {
			parts = append(parts, p.name+" "+millis(p.ms))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}
