package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// inputs keeps what decisions depended on, for replay. A batch is done only when its inputs are acknowledged like its decisions;
// but an input that can't be kept (too large, no such topic) is counted and logged, and holds up no decision.
type inputs struct {
	cfg     stream.Config
	write   func(context.Context, ...*kgo.Record) (wait func() error)
	log     *slog.Logger
	metrics *metrics
	clock   func() time.Time
	on      bool
	// pausedUntil keeps writes back that the broker has just refused as a whole: each would take seconds to be refused again.
	pausedUntil atomic.Int64
	// signals are the last ones written.
	signals atomic.Pointer[snapshot]
}

// inputsPause is how long nothing is written after the broker refused it as a whole.
const inputsPause = 5 * time.Minute

// start sends the inputs of a batch, and returns a function that waits until they are acknowledged. It fails only when the
// context ends.
func (i *inputs) start(ctx context.Context, recs []*kgo.Record) (wait func() error) {
	now := i.clock()
	if len(recs) == 0 {
		return func() error { return nil }
	}
	if now.UnixNano() < i.pausedUntil.Load() {
		i.metrics.inputs.WithLabelValues("skipped").Add(float64(len(recs)))
		return func() error { return nil }
	}
	acknowledged := i.write(ctx, recs...)
	return sync.OnceValue(func() error { return i.settle(ctx, len(recs), acknowledged()) })
}

func (i *inputs) settle(ctx context.Context, n int, err error) error {
	if err == nil {
		i.metrics.inputs.WithLabelValues("written").Add(float64(n))
		return nil
	}
	if errors.Is(err, stream.ErrUnconfirmed) && ctx.Err() != nil {
		return err
	}
	failed := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && !errors.Is(err, stream.ErrUnconfirmed) {
		failed = joined.Unwrap()
	}
	tooLarge := 0
	for _, e := range failed {
		if errors.Is(e, stream.ErrTooLarge) {
			tooLarge++
		}
	}
	i.metrics.inputs.WithLabelValues("too_large").Add(float64(tooLarge))
	i.metrics.inputs.WithLabelValues("failed").Add(float64(len(failed) - tooLarge))
	i.metrics.inputs.WithLabelValues("written").Add(float64(max(0, n-len(failed))))
	i.log.WarnContext(ctx, "inputs of decisions could not be kept; those decisions can't be replayed", "failed", len(failed), "of", n, telemetry.Err(failed[0]))
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.TopicAuthorizationFailed) {
		i.pausedUntil.Store(i.clock().Add(inputsPause).UnixNano())
	}
	return nil
}

// encode makes the record of an input, or none when inputs are not kept. An input that is no JSON costs its replay, not its
// decision.
func (i *inputs) encode(in *route.Input, from *kgo.Record) (*kgo.Record, bool) {
	if in == nil || !i.on {
		return nil, false
	}
	id := query.AttemptID(in.Task.ID, in.Attempt)
	data, err := i.marshal(in)
	var rec *kgo.Record
	if err == nil {
		rec, err = i.cfg.Encode(stream.Message{
			Topic: event.TopicInputs, Key: in.Task.ID, Type: event.InputRecorded, ID: id, Subject: in.Task.ID, Time: in.Now, Data: data, Fresh: true,
		})
	}
	if err != nil {
		i.metrics.inputs.WithLabelValues("failed").Inc()
		i.log.Error("an input could not be written as JSON", telemetry.KeyTask, in.Task.ID, telemetry.Err(err))
		return nil, false
	}
	rec.Context = from.Context
	return rec, true
}

// snapshot is the JSON of a snapshot of signals. Snapshots never change once they are seen, so the map tells which it is; it is
// kept so that no other can come to lie in its place.
type snapshot struct {
	of   signal.Snapshot
	data []byte
}

// marshal writes an input. Its signals are written once for all inputs that saw the same.
func (i *inputs) marshal(in *route.Input) ([]byte, error) {
	if len(in.Signals) == 0 {
		return in.MarshalJSON()
	}
	last := i.signals.Load()
	if last == nil || reflect.ValueOf(last.of).Pointer() != reflect.ValueOf(in.Signals).Pointer() {
		data, err := json.Marshal(in.Signals)
		if err != nil {
			return nil, fmt.Errorf("encoding signals: %w", err)
		}
		last = &snapshot{in.Signals, data}
		i.signals.Store(last)
	}
	return in.MarshalWith(last.data)
}

// recordPolicies writes the text of each policy that comes into force to the policies topic. It looks rather than being told, so
// that loading a policy never waits for the broker.
func (a *App) recordPolicies(ctx context.Context) error {
	written := ""
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if p := a.decider.policy.Load(); p.Hash != written && a.recordPolicy(ctx, p) {
			written = p.Hash
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// recordPolicy says whether there is nothing left to do for a policy.
func (a *App) recordPolicy(ctx context.Context, p *policy.Policy) bool {
	now := time.Now().UTC()
	data, err := event.Marshal(event.PolicyText{Hash: p.Hash, Text: p.Source, File: a.cfg.Policy.File, LoadedAt: now})
	if err == nil {
		err = a.producer.Send(ctx, stream.Message{
			Topic: event.TopicPolicies, Key: p.Hash, Type: event.PolicyLoaded, ID: p.Hash, Subject: p.Hash, Time: now, Data: data,
		})
	}
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
		return false
	}
	a.log.WarnContext(ctx, "the policy's text could not be kept; replay will need its file", "policy", p.Hash, telemetry.Err(err))
	return errors.Is(err, stream.ErrTooLarge)
}
