package slotlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/slots"
)

// Run writes and reads until the context ends, once there is a cap.
func (l *Log) Run(ctx context.Context) error {
	select {
	case <-l.onCh:
	case <-ctx.Done():
		return nil
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		select {
		case <-l.readyCh: // what is asked for before is asked for under our caps
			l.send(ctx)
		case <-ctx.Done():
		}
	})
	said := ""
	for ctx.Err() == nil {
		err := l.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		l.mu.Lock()
		l.turn(&l.unread, err.Error())
		l.mu.Unlock()
		if err.Error() != said { // a broker that is gone is so for many rounds
			said = err.Error()
			l.cfg.Log.WarnContext(ctx, "reading the slots; starting anew", telemetry.KeyTopic, event.TopicSlots, telemetry.Err(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

// follow reads from the newest state record on. It returns with an error, or when the context ends.
func (l *Log) follow(ctx context.Context) error {
	deps := l.cfg.Deps
	deps.Tracer = nil // what is followed here is state, not work
	cl, err := stream.NewClient(l.cfg.Kafka, deps, "executor-slots",
		kgo.FetchMinBytes(1), kgo.FetchMaxWait(2*time.Second), kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return err
	}
	defer cl.Close()
	topic := l.cfg.Kafka.Topic(event.TopicSlots)
	start, end, err := bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return err
	}
	fold, state, err := l.load(ctx, start, end)
	if err != nil {
		return err
	}
	from := max(start, fold.Next())
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}})
	if from >= end { // also when retention has taken all there was
		l.ready(fold, state)
	}
	ticks, checks := time.NewTicker(time.Second), time.NewTicker(checkEvery)
	defer ticks.Stop()
	defer checks.Stop()
	for {
		pollCtx, cancel := context.WithTimeout(ctx, time.Second)
		fetches := cl.PollFetches(pollCtx)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			switch {
			case errors.Is(e.Err, context.DeadlineExceeded):
			case errors.Is(e.Err, kerr.OffsetOutOfRange), errors.Is(e.Err, kerr.UnknownTopicID), errors.Is(e.Err, kerr.TopicAuthorizationFailed), fetches.IsClientClosed():
				return fmt.Errorf("reading %s: %w", topic, e.Err)
			default:
				l.cfg.Log.WarnContext(ctx, "reading the slots", telemetry.KeyTopic, event.TopicSlots, telemetry.Err(e.Err))
			}
		}
		recs := fetches.Records()
		if l.fold != fold { // nobody else sets it
			for _, rec := range recs {
				apply(fold, rec)
				if r, ok := decode(rec); ok && r.Kind == event.SlotState {
					state = rec.Offset
				}
			}
			if fold.Next() >= end {
				l.ready(fold, state)
			}
		} else if len(recs) > 0 {
			l.take(ctx, recs)
		}
		select {
		case <-ticks.C:
			l.look()
		case <-checks.C:
			if err := l.check(ctx, cl, topic, fold.Next()); err != nil {
				return err
			}
		default:
		}
	}
}

// checkEvery is how often it is looked whether the topic is still the one that was read.
const checkEvery = 3 * time.Second

// check finds a topic that was made anew, of which a reader hears nothing, and a broker that does not answer.
func (l *Log) check(ctx context.Context, cl *kgo.Client, topic string, read int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, end, err := bounds(ctx, kadm.NewClient(cl), topic)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.turn(&l.unread, "the broker has not answered for "+patience.String())
	case err != nil:
		return err
	case end < read:
		return fmt.Errorf("reading %s: it ends at %d and was read to %d: it was made anew, or has lost its end", topic, end, read)
	default:
		l.turn(&l.unread, "")
	}
	return nil
}

// bounds are those of the one partition. The order of records is all that the slots rest on, so more than one won't do.
func bounds(ctx context.Context, admin *kadm.Client, topic string) (start, end int64, err error) {
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return 0, 0, fmt.Errorf("there is no topic %s; `pointsman topics apply` makes it: %w", topic, err)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading %s: %w", topic, err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading %s: %w", topic, err)
	}
	if n := len(ends[topic]); n != 1 {
		return 0, 0, fmt.Errorf("reading %s: it has %d partitions and must have one", topic, n)
	}
	s, _ := starts.Lookup(topic, 0)
	e, _ := ends.Lookup(topic, 0)
	return s.Offset, e.Offset, nil
}

// load finds the newest state record, looking back further and further. A log without one is read from its start; if retention has
// taken what was before, so has it taken all that can still run.
func (l *Log) load(ctx context.Context, start, end int64) (fold *slots.Fold, at int64, err error) {
	for back := 4 * l.cfg.StateEvery; ; back *= 4 {
		from := max(start, end-back)
		var state *event.SlotsSnapshot
		err := stream.ReadRanges(ctx, l.cfg.Kafka, l.cfg.Deps, []stream.Range{{Topic: event.TopicSlots, From: from, To: end}}, func(rec *kgo.Record) error {
			if r, ok := decode(rec); ok && r.Kind == event.SlotState && r.State != nil && r.State.Next >= start && r.State.Next <= rec.Offset {
				state, at = r.State, rec.Offset
			}
			return nil
		})
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("looking for the state of the slots: %w", err)
		case state != nil:
			return slots.From(*state), at, nil
		case from == start:
			return slots.New(), start - 1, nil
		}
	}
}

func decode(rec *kgo.Record) (r event.SlotRecord, ok bool) {
	if rec.Attrs.IsControl() || len(rec.Value) == 0 {
		return r, false
	}
	return r, json.Unmarshal(rec.Value, &r) == nil
}

func apply(fold *slots.Fold, rec *kgo.Record) []slots.Grant {
	r, ok := decode(rec)
	if !ok {
		return fold.Skip(rec.Offset, rec.Timestamp)
	}
	return fold.Apply(rec.Offset, rec.Timestamp, r)
}

// ready takes a fold over that has read all there was.
func (l *Log) ready(fold *slots.Fold, state int64) {
	l.mu.Lock()
	first, lost := l.fold == nil, l.fold != nil && fold.Next() < l.fold.Next()
	l.fold, l.state, l.at, l.aged, l.readAt = fold, state, fold.At(), fold.At(), time.Now()
	l.turn(&l.unread, "")
	if !slices.ContainsFunc(slices.Concat(l.inWork, l.out), func(r event.SlotRecord) bool { return r.Kind == event.SlotCaps && r.Seq == l.capsAt }) {
		l.capsAt = 0 // it is read, or lost
	}
	l.news = l.news || lost
	pending := l.out
	l.out = nil
	l.settleCaps(false)
	l.out = append(l.out, pending...) // nothing is asked for before our caps
	var answers []func()
	for id, o := range l.own {
		if answer := l.settle(id, o); answer != nil {
			answers = append(answers, answer)
		}
	}
	if lost {
		l.askAgain()
	}
	if first {
		close(l.readyCh)
	}
	l.mu.Unlock()
	for _, answer := range answers {
		answer()
	}
}

// askAgain writes what the log has lost: first what runs.
func (l *Log) askAgain() {
	for _, held := range []bool{true, false} {
		for _, o := range l.own {
			switch {
			case o.seq == 0 || held != (o.held || o.runs):
				continue
			case held:
				l.write(o, event.SlotRun)
			default:
				l.write(o, event.SlotAsk)
			}
			o.again = true
		}
	}
}

// take applies records and tells those that they are about.
func (l *Log) take(ctx context.Context, recs []*kgo.Record) {
	l.mu.Lock()
	var answers []func()
	mine := func(id string) {
		if o := l.own[id]; o != nil {
			if answer := l.settle(id, o); answer != nil {
				answers = append(answers, answer)
			}
		}
	}
	ours := false
	for _, rec := range recs {
		r, ok := decode(rec)
		for _, g := range apply(l.fold, rec) {
			mine(g.AttemptID)
		}
		if !ok {
			continue
		}
		mine(r.AttemptID)
		switch {
		case r.Kind == event.SlotState:
			l.state, l.aged = rec.Offset, rec.Timestamp
		case r.Kind == event.SlotCaps:
			l.capsRead(ctx, r)
		case r.Owner == l.cfg.Owner:
			ours = true
		}
		l.at, l.readAt = rec.Timestamp, time.Now()
		if rec.Attrs.TimestampType() != appendTime && !l.clocks {
			l.clocks = true
			l.cfg.Log.ErrorContext(ctx, "the slots have their writers' times: with a wrong clock anywhere, caps are exceeded. Set message.timestamp.type=LogAppendTime",
				telemetry.KeyTopic, rec.Topic)
		}
		if l.aged.IsZero() {
			l.aged = l.at
		}
	}
	if ours {
		l.keepShort()
	}
	l.mu.Unlock()
	for _, answer := range answers {
		answer()
	}
}

// appendTime is the type of a record's time that is the broker's.
const appendTime = 1

// stateAge is how old a state may get, so that one is there before retention takes what it is made of.
const stateAge = time.Hour

// keepShort writes a state if one is due. Whoever writes records writes states too.
func (l *Log) keepShort() {
	since, old := l.fold.Next()-1-l.state, l.at.Sub(l.aged) > stateAge
	if since < max(l.cfg.StateEvery, 2*int64(l.fold.Len())) && !old {
		return
	}
	l.seq++
	l.state, l.aged = l.fold.Next(), l.at // one at a time
	s := l.fold.Snapshot()
	l.put(event.SlotRecord{Kind: event.SlotState, Seq: l.seq, State: &s})
}

// settle notes what became of an attempt's record, and gives who is to be told.
func (l *Log) settle(id string, o *own) (answer func()) {
	e, ok := l.fold.Entry(id)
	if !ok || o.seq == 0 || e.Owner != l.cfg.Owner || e.Seq != o.seq {
		return nil
	}
	if !o.read {
		o.read = true
		if e.Held && o.answer != nil {
			l.cfg.Took(time.Since(o.began))
		}
		if !e.Held {
			close(o.changed)
			answer = told(o.answer, false)
		}
	}
	o.held = e.Held
	if e.Held {
		answer, o.answer = told(o.answer, true), nil
	}
	return answer
}

func told(answer func(bool), held bool) func() {
	if answer == nil {
		return nil
	}
	return func() { answer(held) }
}

// capsRead looks at caps that are new in the log.
func (l *Log) capsRead(ctx context.Context, r event.SlotRecord) {
	switch {
	case r.Owner == l.cfg.Owner && r.Seq == l.capsAt:
		l.news, l.capsAt = false, 0
	case r.Owner != l.cfg.Owner && !l.news && !slots.Same(l.fold.Caps(), l.caps):
		l.cfg.Log.WarnContext(ctx, "another executor has set other caps than are configured here; they hold", "owner", r.Owner,
			"caps", slots.Text(l.fold.Caps()), "configured", slots.Text(l.caps))
	}
	l.sweep()
}

// settleCaps writes the configuration's caps if they are news. Until they are read back, both count. changing says that earlier ones of
// ours are on their way, so that what the log says now is not what it will say.
func (l *Log) settleCaps(changing bool) {
	switch {
	case !l.news || l.capsAt > 0:
	case !changing && slots.Same(l.fold.Caps(), l.caps):
		l.news = false
	default:
		l.seq++
		l.capsAt = l.seq
		caps := l.caps
		l.put(event.SlotRecord{Kind: event.SlotCaps, Seq: l.seq, Caps: &caps})
	}
	l.sweep()
}

// look tells those who wait of a broker that does not answer, and lets time pass in the log where something has expired.
func (l *Log) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sent.IsZero() && time.Since(l.sent) > patience && l.unwritten == "" {
		l.turn(&l.unwritten, "the broker has not answered for "+patience.String())
	}
	if l.fold != nil && len(l.out)+len(l.inWork) == 0 && l.fold.Overdue(l.at.Add(time.Since(l.readAt))) {
		l.seq++
		l.put(event.SlotRecord{Kind: event.SlotTick, Seq: l.seq})
	}
}
