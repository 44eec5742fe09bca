package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// maxRaces bounds how often a lost lease race is tried again. Who loses that often is not the one the group has chosen.
const maxRaces = 10

// OpenLedger takes a ledger partition over: it reads from the last checkpoint to the end, writes a lease with the next epoch, reads on
// to it, and returns when it stands. The group has to have given the partition to this process: opening it takes it from whoever
// has it.
func OpenLedger(ctx context.Context, cfg Config, deps Deps, lc LedgerConfig) (*Ledger, error) {
	l, err := openLedger(ctx, cfg, deps, lc)
	if err != nil {
		return nil, fmt.Errorf("opening ledger %s[%d]: %w", lc.Topic, lc.Partition, err)
	}
	return l, nil
}

func openLedger(ctx context.Context, cfg Config, deps Deps, lc LedgerConfig) (*Ledger, error) {
	l := &Ledger{
		cfg: cfg, deps: deps, lc: lc, topic: cfg.Topic(lc.Topic), began: time.Now(), m: newLedgerMetrics(deps.Registry),
		waiting: map[int64]chan Entry{}, lost: make(chan struct{}), saved: -1,
	}
	l.deps.Tracer = nil // a span for each claim would drown the trace it belongs to
	cl, err := NewClient(cfg, l.deps, fmt.Sprintf("%s-%d", lc.Topic, lc.Partition),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchMinBytes(1), kgo.FetchMaxWait(2*time.Second),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return nil, err
	}
	l.client, l.admin = cl, kadm.NewClient(cl)
	if err := l.take(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	var bg context.Context
	bg, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.bg.Go(func() { l.tail(bg) })
	l.bg.Go(func() { l.checkpoints(bg) })
	return l, nil
}

// take reads the log and wins a lease.
func (l *Ledger) take(ctx context.Context) error {
	var anchor ledger.Anchor
	var end int64
	err := patiently(ctx, func() (err error) {
		anchor, end, err = l.anchor(ctx)
		return err
	})
	if err != nil {
		return err
	}
	l.start = anchor
	l.fold = ledger.NewFold(anchor, ledger.WithPayloadLimit(l.lc.PayloadLimit), ledger.WithState(l.lc.State))
	l.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{l.topic: {l.lc.Partition: kgo.NewOffset().At(anchor.Offset)}})
	if err := l.readUntil(ctx, func() bool { return l.fold.Next() >= end }); err != nil {
		return err
	}
	for race := range maxRaces {
		r := l.fold.Lease(l.lc.Partition, l.lc.Owner)
		r.Seq = l.seq.Add(1)
		l.epoch = r.Epoch
		back := make(chan Entry, 1)
		l.mu.Lock()
		l.waiting[r.Seq] = back
		l.mu.Unlock()
		answer, err := l.append(ctx, r)
		if err != nil {
			return err
		}
		if err := l.readUntil(ctx, func() bool { return len(back) > 0 || len(answer) > 0 }); err != nil {
			return err
		}
		if len(answer) > 0 {
			if err := <-answer; err != nil {
				return fmt.Errorf("writing the lease: %w", err)
			}
		}
		if err := l.readUntil(ctx, func() bool { return len(back) > 0 }); err != nil {
			return err
		}
		e := <-back
		l.mu.Lock()
		delete(l.waiting, r.Seq)
		l.leaseAt, l.leaseRead, l.leaseLed = e.At, time.Now(), l.ledFrom
		l.mu.Unlock()
		if e.Verdict.Accepted && l.fold.Holds(l.epoch, l.lc.Owner) {
			l.m.takeovers.WithLabelValues(l.lc.Topic).Inc()
			l.deps.log().InfoContext(ctx, "took a ledger partition over", "topic", l.lc.Topic, "partition", l.lc.Partition, "epoch", l.epoch,
				"from", l.start.Offset, "to", e.Offset, "open", len(l.fold.Open()), "tasks", l.fold.Len())
			return nil
		}
		l.deps.log().WarnContext(ctx, "lost a lease race", "topic", l.lc.Topic, "partition", l.lc.Partition, "epoch", l.epoch, "reason", string(e.Verdict.Reason))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(rand.Int64N(int64(10*time.Millisecond) << race))):
		}
	}
	return fmt.Errorf("%w: lost %d races for it", ErrLeaseLost, maxRaces)
}

// patiently tries again what the broker says will pass: a coordinator that moves, or that a new cluster still has to make.
func patiently(ctx context.Context, try func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	return backoff.Retry(func() error {
		err := try()
		if err != nil && !kerr.IsRetriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
}

// anchor finds where to start reading, and where the log ends now.
func (l *Ledger) anchor(ctx context.Context) (a ledger.Anchor, end int64, err error) {
	starts, err := l.admin.ListStartOffsets(ctx, l.topic)
	if err != nil {
		return a, 0, err
	}
	ends, err := l.admin.ListEndOffsets(ctx, l.topic)
	if err != nil {
		return a, 0, err
	}
	s, okStart := starts.Lookup(l.topic, l.lc.Partition)
	e, okEnd := ends.Lookup(l.topic, l.lc.Partition)
	if !okStart || !okEnd {
		return a, 0, kerr.UnknownTopicOrPartition
	}
	if err := errors.Join(s.Err, e.Err); err != nil {
		return a, 0, err
	}
	start, end := s.Offset, e.Offset
	saved, ok, err := l.savedAnchor(ctx)
	if err != nil {
		return a, 0, err
	}
	log := l.deps.log().With("topic", l.lc.Topic, "partition", l.lc.Partition, "log_start", start, "log_end", end)
	switch {
	case ok && saved.Offset > end:
		log.ErrorContext(ctx, "the ledger ends before its checkpoint: it was made anew, or lost its end", "checkpoint", saved.Offset)
		return ledger.Anchor{Offset: start, Inferred: start > 0}, end, nil
	case ok && saved.Offset < start:
		log.ErrorContext(ctx, "retention has taken ledger records that were still needed: attempts of that time may run twice", "checkpoint", saved.Offset)
		return ledger.Anchor{Offset: start, Epoch: saved.Epoch, Owner: saved.Owner, Inferred: true}, end, nil
	case ok:
		l.saved = saved.Offset
		return saved, end, nil
	default:
		return ledger.Anchor{Offset: start, Inferred: start > 0}, end, nil
	}
}

func (l *Ledger) anchorGroup() string { return l.cfg.Group(l.lc.Topic + "-ledger") }

func (l *Ledger) savedAnchor(ctx context.Context) (a ledger.Anchor, ok bool, err error) {
	offsets, err := l.admin.FetchOffsets(ctx, l.anchorGroup())
	if errors.Is(err, kerr.GroupIDNotFound) {
		return a, false, nil
	}
	if err != nil {
		return a, false, err
	}
	o, ok := offsets.Lookup(l.topic, l.lc.Partition)
	if !ok || o.At < 0 {
		return a, false, nil
	}
	if o.Err != nil {
		return a, false, o.Err
	}
	if a, ok = parseAnchor(o.Metadata, o.At); !ok {
		l.deps.log().ErrorContext(ctx, "the ledger's checkpoint can't be read, starting at the beginning", "topic", l.lc.Topic,
			"partition", l.lc.Partition, "offset", o.At, "metadata", bounded(o.Metadata, 200))
	}
	return a, ok, nil
}

func parseAnchor(metadata string, at int64) (a ledger.Anchor, ok bool) {
	if err := json.Unmarshal([]byte(metadata), &a); err != nil || a.Offset != at {
		return ledger.Anchor{}, false
	}
	return a, true
}

// readUntil reads on until something is so. It is used only while nothing else reads.
func (l *Ledger) readUntil(ctx context.Context, so func() bool) error {
	for !so() {
		// The producer's answer does not end a poll, so a poll may not last.
		pollCtx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		err := l.poll(pollCtx)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tail reads for as long as the partition is ours.
func (l *Ledger) tail(ctx context.Context) {
	for ctx.Err() == nil {
		if err := l.poll(ctx); err != nil {
			l.giveUp(err)
			return
		}
		l.mu.Lock()
		holds, epoch, owner := l.fold.Holds(l.epoch, l.lc.Owner), l.fold.Epoch(), l.fold.Owner()
		l.mu.Unlock()
		if !holds {
			l.m.lost.WithLabelValues(l.lc.Topic).Inc()
			l.deps.log().WarnContext(ctx, "a ledger partition was taken over by another owner", "topic", l.lc.Topic, "partition", l.lc.Partition,
				"ours", l.epoch, "epoch", epoch, "owner", owner)
			l.giveUp(fmt.Errorf("%w: epoch %d of %s", ErrLeaseLost, epoch, owner))
			return
		}
	}
}

// poll applies what has arrived. Only errors that no further poll can mend are returned.
func (l *Ledger) poll(ctx context.Context) error {
	fetches := l.client.PollFetches(ctx)
	if fetches.IsClientClosed() {
		return kgo.ErrClientClosed
	}
	for _, e := range fetches.Errors() {
		switch {
		case ctx.Err() != nil:
		case errors.Is(e.Err, kerr.OffsetOutOfRange), errors.Is(e.Err, kerr.UnknownTopicID), errors.Is(e.Err, kerr.TopicAuthorizationFailed):
			return fmt.Errorf("reading the ledger: %w", e.Err)
		default:
			l.deps.log().WarnContext(ctx, "reading the ledger", "topic", l.lc.Topic, "partition", l.lc.Partition, "error", e.Err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fetches.EachRecord(l.apply)
	return nil
}

// apply folds one record in, and tells its writer if that is us.
func (l *Ledger) apply(rec *kgo.Record) {
	l.brokerTime = rec.Attrs.TimestampType() == 1
	if rec.LeaderEpoch != l.leader {
		l.leader, l.ledFrom = rec.LeaderEpoch, rec.Offset
	}
	if rec.Attrs.IsControl() {
		l.fold.Skip(rec.Offset, rec.Timestamp)
		return
	}
	r, err := ledger.Decode(rec.Value)
	if err != nil {
		l.fold.Skip(rec.Offset, rec.Timestamp)
		l.deps.log().Warn("a value in the ledger is not a ledger record", "topic", l.lc.Topic, "partition", l.lc.Partition, "offset", rec.Offset)
		return
	}
	v := l.fold.Apply(rec.Offset, rec.Timestamp, r)
	if r.Owner != l.lc.Owner || r.Epoch != l.epoch {
		return
	}
	if back, ok := l.waiting[r.Seq]; ok {
		select {
		case back <- Entry{Verdict: v, Offset: rec.Offset, At: rec.Timestamp, Payload: r.Payload}:
		default:
		}
	}
}
