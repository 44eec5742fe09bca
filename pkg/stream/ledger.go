package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// ErrLeaseLost is wrapped when a newer lease stands in the ledger: the partition is somebody else's. Nothing may be submitted and
// nothing published for it any more.
var ErrLeaseLost = errors.New("the ledger partition has a newer lease")

// LedgerConfig says which ledger partition to own, and how.
type LedgerConfig struct {
	Topic     string // without prefix
	Partition int32
	Owner     string // unique per process start

	Guard           ledger.Guard
	PayloadLimit    int           // bytes of a payload kept in memory; a longer one is read again when it is asked for
	CheckpointEvery time.Duration // how often what is over is forgotten and the start for the next owner committed
	Slack           time.Duration // how far clocks of brokers and processes may be apart when Tasks are forgotten

	// State folds records of other kinds than an attempt's, nil if there are none. It is used under the Ledger's lock alone:
	// look at it in View.
	State ledger.State
}

// DefaultLedgerConfig returns the settings for a partition of the executor's ledger.
func DefaultLedgerConfig(partition int32, owner string) LedgerConfig {
	return LedgerConfig{
		Topic: event.TopicAttemptState, Partition: partition, Owner: owner,
		Guard: ledger.DefaultGuard(), PayloadLimit: 16 << 10, CheckpointEvery: 15 * time.Second, Slack: time.Minute,
	}
}

// Entry is what became of a record that this owner wrote, read back from the log.
type Entry struct {
	Verdict ledger.Verdict
	Offset  int64
	At      time.Time
	Payload json.RawMessage // as it stands in the log
}

// Ledger owns one ledger partition for as long as no newer lease is in it. It is safe for concurrent use.
//
// It reads the partition all the time. A write returns when its record was read back, so that its verdict is known.
type Ledger struct {
	cfg    Config
	deps   Deps
	lc     LedgerConfig
	client *kgo.Client
	admin  *kadm.Client
	topic  string // on the cluster
	m      *ledgerMetrics
	began  time.Time
	epoch  int64
	seq    atomic.Int64
	cancel context.CancelFunc
	bg     sync.WaitGroup

	mu         sync.Mutex
	fold       *ledger.Fold
	start      ledger.Anchor
	waiting    map[int64]chan Entry // by seq
	leaseAt    time.Time            // append time of our lease
	leaseRead  time.Time            // when we read it back, with the monotonic clock
	brokerTime bool                 // record times are the broker's
	leader     int32                // leader epoch of the newest record read
	ledFrom    int64                // first record read of that leader epoch
	leaseLed   int64                // ledFrom when our lease was read back
	lostErr    error
	lost       chan struct{}
	saved      int64 // offset of the committed anchor, -1 if there is none
	deep       *deepIndex
}

// Lost is closed when the partition is no longer ours. Err says why.
func (l *Ledger) Lost() <-chan struct{} { return l.lost }

// Err is nil as long as the partition is ours.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostErr
}

// Epoch returns the epoch of our lease.
func (l *Ledger) Epoch() int64 { return l.epoch }

// Owner returns the name our lease is under.
func (l *Ledger) Owner() string { return l.lc.Owner }

// View gives access to the fold. It must not be kept, and nothing slow may happen meanwhile.
func (l *Ledger) View(look func(f *ledger.Fold)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look(l.fold)
}

// Task returns what the ledger says of a Task. What is past its deadline may have been forgotten: see Deep.
func (l *Ledger) Task(id string) (t ledger.Task, ok bool) {
	l.View(func(f *ledger.Fold) { t, ok = f.Task(id) })
	return t, ok
}

// Attempt returns what the ledger says of an attempt.
func (l *Ledger) Attempt(key string) (a ledger.Attempt, ok bool) {
	l.View(func(f *ledger.Fold) { a, ok = f.Attempt(key) })
	return a, ok
}

// Open returns the attempts that are claimed and not ended. After OpenLedger these are what the owner before us left.
func (l *Ledger) Open() (open []ledger.Attempt) {
	l.View(func(f *ledger.Fold) { open = f.Open() })
	return open
}

// Waiting returns the Tasks that have records, no end and no open attempt.
func (l *Ledger) Waiting() (waiting []ledger.Task) {
	l.View(func(f *ledger.Fold) { waiting = f.Waiting() })
	return waiting
}

// Mono reads the clock that guards are measured by.
func (l *Ledger) Mono() time.Duration { return time.Since(l.began) }

// BrokerNow returns what the broker's clock shows at least: the time it put on our lease, and what has passed since we read it.
func (l *Ledger) BrokerNow() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaseAt.Add(time.Since(l.leaseRead))
}

// Write appends a record and waits until it is read back. Kind, Key, TaskID, Attempt and Deadline are the caller's, the rest is filled in.
//
// An error leaves open whether the record is or will be in the log. A claim can then be written again; before another end is written
// for the same attempt, nothing is wrong either: the first one counts, and Task says what it was.
func (l *Ledger) Write(ctx context.Context, r ledger.Record) (Entry, error) {
	entries, err := l.WriteAll(ctx, []ledger.Record{r})
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

// WriteAll is Write for several records, in their order, with one wait for all of them. With an error nothing is known of any.
func (l *Ledger) WriteAll(ctx context.Context, recs []ledger.Record) ([]Entry, error) {
	writes := make([]write, len(recs))
	l.mu.Lock()
	if l.lostErr != nil {
		defer l.mu.Unlock()
		return nil, l.lostErr
	}
	for i, r := range recs {
		r.Epoch, r.Owner, r.Seq = l.epoch, l.lc.Owner, l.seq.Add(1)
		writes[i] = write{r: r, back: make(chan Entry, 1)}
		l.waiting[r.Seq] = writes[i].back
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, w := range writes {
			delete(l.waiting, w.r.Seq)
		}
	}()
	began := time.Now()
	for i := range writes {
		var err error
		if writes[i].failed, err = l.append(ctx, writes[i].r); err != nil {
			return nil, err
		}
	}
	entries := make([]Entry, len(recs))
	for i, w := range writes {
		e, err := l.readBack(ctx, w)
		if err != nil {
			return nil, err
		}
		l.m.readBack.WithLabelValues(l.lc.Topic, string(w.r.Kind)).Observe(time.Since(began).Seconds())
		if !e.Verdict.Accepted {
			l.m.void.WithLabelValues(l.lc.Topic, string(e.Verdict.Reason)).Inc()
		}
		entries[i] = e
	}
	return entries, nil
}

// write is a record on its way.
type write struct {
	r      ledger.Record
	back   chan Entry // it was read back
	failed chan error // the broker's answer
}

func (l *Ledger) readBack(ctx context.Context, w write) (Entry, error) {
	failed := w.failed
	for {
		select {
		case e := <-w.back:
			return e, nil
		case err := <-failed:
			if err != nil {
				return Entry{}, fmt.Errorf("writing %s of %s: %w", w.r.Kind, w.r.Key, err)
			}
			failed = nil // acknowledged; only the read-back is missing
		case <-l.lost:
			select {
			case e := <-w.back: // it was read before the newer lease
				return e, nil
			default:
				return Entry{}, l.Err()
			}
		case <-ctx.Done():
			return Entry{}, fmt.Errorf("writing %s of %s: %w: %w", w.r.Kind, w.r.Key, ErrUnconfirmed, context.Cause(ctx))
		}
	}
}

// Claim writes a claim. Who does not go by a Driver has to look after the guard: it runs from before this call.
func (l *Ledger) Claim(ctx context.Context, r ledger.Record) (Entry, error) {
	r.Kind = ledger.KindClaim
	return l.Write(ctx, r)
}

// Submitted notes where a claimed attempt went.
func (l *Ledger) Submitted(ctx context.Context, r ledger.Record) (Entry, error) {
	r.Kind = ledger.KindSubmitted
	return l.Write(ctx, r)
}

// End writes the end of an attempt; with Final set, of its Task.
func (l *Ledger) End(ctx context.Context, r ledger.Record) (Entry, error) {
	r.Kind = ledger.KindEnd
	return l.Write(ctx, r)
}

// append hands a record to the client. The channel gets the broker's answer.
func (l *Ledger) append(ctx context.Context, r ledger.Record) (chan error, error) {
	value, err := r.Encode()
	if err != nil {
		return nil, err
	}
	rec, err := l.cfg.Encode(Message{
		Topic: l.lc.Topic, Partition: l.lc.Partition, Key: r.Key, Type: event.LedgerRecorded,
		ID: fmt.Sprintf("%s/%d/%d", r.Owner, r.Epoch, r.Seq), Data: value,
	})
	if err != nil {
		return nil, err
	}
	if limit := l.deps.maxBytes(l.lc.Topic); recordSize(rec)+batchOverhead > limit {
		return nil, fmt.Errorf("writing %s of %s: %w: %d bytes, limit %d", r.Kind, r.Key, ErrTooLarge, recordSize(rec), limit)
	}
	answer := make(chan error, 1)
	// Without the context's end: a record that is called back would take the ones behind it along.
	l.client.TryProduce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) { answer <- err })
	return answer, nil
}

// Payload returns the payload of an accepted record, reading it again if the fold did not keep it.
func (l *Ledger) Payload(ctx context.Context, m ledger.Mark) (json.RawMessage, error) {
	if !m.Trimmed {
		return m.Payload, nil
	}
	var payload json.RawMessage
	var found bool
	err := l.read(ctx, m.Offset, m.Offset+1, func(rec *kgo.Record) error {
		r, err := ledger.Decode(rec.Value)
		payload, found = r.Payload, rec.Offset == m.Offset
		return err
	})
	if err == nil && !found {
		err = errors.New("the record is gone")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s[%d]@%d again: %w", l.topic, l.lc.Partition, m.Offset, err)
	}
	return payload, nil
}

// read reads a stretch of the partition a second time.
func (l *Ledger) read(ctx context.Context, from, to int64, fn func(*kgo.Record) error) error {
	return ReadRanges(ctx, l.cfg, l.deps, []Range{{l.lc.Topic, l.lc.Partition, from, to}}, fn)
}

// Close stops reading, after a last checkpoint if the partition is still ours. The lease stays: it ends with the next one.
func (l *Ledger) Close(ctx context.Context) error {
	l.cancel()
	l.bg.Wait()
	err := l.Checkpoint(ctx)
	l.giveUp(errors.New("the ledger was closed"))
	l.client.Close()
	if errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// giveUp ends the ownership. The first reason counts.
func (l *Ledger) giveUp(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lostErr == nil {
		l.lostErr = err
		close(l.lost)
	}
}
