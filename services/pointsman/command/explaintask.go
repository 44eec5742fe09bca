package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/services/pointsman/record"
)

// recordedTask is what the record holds of one Task.
type recordedTask struct {
	decisions []event.RouteDecision
	raw       map[string][]byte
	inputs    map[string][]route.Input
}

// recorded explains the decisions of a Task from the record, as they were made.
func (c *explainCmd) recorded(ctx context.Context, s *streams) (err error) {
	defer func() { err = unfinished(ctx, err) }()
	if c.SQL != "" {
		return &lifecycle.UsageError{Err: errors.New("a query or --task, not both")}
	}
	from, to, err := c.span(time.Now())
	if err != nil {
		return err
	}
	rec, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close(context.WithoutCancel(ctx))) }()
	policies, err := rec.Policies(ctx)
	if err != nil {
		return err
	}
	t := recordedTask{raw: map[string][]byte{}, inputs: map[string][]route.Input{}}
	update, finish := s.bar("looking for the task")
	err = rec.Read(ctx, from, to, record.Reader{Key: c.Task, Decision: t.decision, Input: t.input, Progress: update})
	finish()
	if err != nil {
		return err
	}
	if len(t.decisions) == 0 {
		return fmt.Errorf("there is no decision on task %s in the record", c.Task)
	}
	slices.SortStableFunc(t.decisions, func(a, b event.RouteDecision) int { return a.DecidedAt.Compare(b.DecidedAt) })
	for i, d := range t.decisions {
		if err := t.print(s, d, policies, c.Output, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// decision keeps the first decision of each id: it is the one that counted.
func (t *recordedTask) decision(raw []byte, d event.RouteDecision) {
	id := d.DecisionID
	if _, again := t.raw[id]; again {
		return
	}
	t.raw[id] = bytes.Clone(raw)
	t.decisions = append(t.decisions, d)
}

func (t *recordedTask) input(in route.Input) {
	id := query.AttemptID(in.Task.ID, in.Attempt)
	t.inputs[id] = append(t.inputs[id], in)
}

// print explains one decision: in full when its input and its policy give it again, else by what it says itself.
func (t *recordedTask) print(s *streams, d event.RouteDecision, policies map[string]*policy.Policy, output string, more bool) error {
	e := route.Explanation{Decision: d, Text: route.Explain(d)}
	note := "Its input is not in the record: this is what the decision says itself."
	for _, in := range t.inputs[d.DecisionID] {
		p := policies[in.PolicyHash]
		switch {
		case !in.Now.Equal(d.DecidedAt):
			continue
		case p == nil:
			note = "The text of its policy is not in the record: this is what the decision says itself."
			continue
		}
		in.Policy = p
		full := route.ExplainInput(in)
		data, err := event.Marshal(full.Decision)
		if err != nil {
			return err
		}
		if note = ""; !bytes.Equal(data, t.raw[d.DecisionID]) {
			note = "This version of pointsman decides otherwise: this is what the decision says itself."
			break
		}
		e = full
	}
	if output == "json" {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("writing the explanation: %w", err)
		}
		_, err = fmt.Fprintln(s.out, string(data))
		return err
	}
	gap := ""
	if more {
		gap = "\n"
	}
	if _, err := fmt.Fprintf(s.out, "%sDecided at %s.\n%s", gap, d.DecidedAt.Format(time.RFC3339Nano), e.Text); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	if note != "" {
		s.say("%s", note)
	}
	return nil
}
