package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrTooLarge is wrapped by the error of a record that its topic does not take, whoever noticed: this process before it sent
// anything, or the broker.
var ErrTooLarge = errors.New("record is too large for its topic")

// ErrUnconfirmed is wrapped by the error of a produce that was given up before the broker had answered. The record may or may not be
// in the log, now or later.
var ErrUnconfirmed = errors.New("the broker has not confirmed the record")

// ErrBusy is wrapped when too many records wait for the broker already. The record was not taken.
var ErrBusy = errors.New("too many records wait for the broker")

// Producer writes events. It is safe for concurrent use.
type Producer struct {
	cfg  Config
	deps Deps
	role string
	dead *prometheus.CounterVec

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	bg     sync.WaitGroup // added to under mu, unless closed

	mu         sync.RWMutex
	client     *kgo.Client
	rebuilding bool // the client is of no use, and somebody is at it
	closed     bool

	turn    chan struct{} // one record at a time is sent alone
	alone   *kgo.Client   // sends them; made when first needed
	waiting int           // records that are to be sent alone
	idle    chan struct{} // closed when there are none
}

// NewProducer connects lazily: a broker that is down shows at the first write.
func NewProducer(cfg Config, deps Deps, role string) (*Producer, error) {
	p := &Producer{cfg: cfg, deps: deps, role: role, dead: newDeadLetterCounter(deps.Registry), turn: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	cl, err := p.connect()
	if err != nil {
		return nil, err
	}
	p.client = cl
	return p, nil
}

func (p *Producer) connect() (*kgo.Client, error) {
	return NewClient(p.cfg, p.deps, p.role+"-producer")
}

// Send writes messages and waits until all are acknowledged. Messages to one topic and key keep their order, except that one whose
// batch the broker called too large is sent again alone, behind what came after it. The error joins those of the messages that failed;
// the others are written.
//
// When the context ends first, the error wraps ErrUnconfirmed: an idempotent record that is on its way can't be called back.
func (p *Producer) Send(ctx context.Context, msgs ...Message) error {
	recs := make([]*kgo.Record, len(msgs))
	for i, m := range msgs {
		rec, err := p.cfg.Encode(m)
		if err != nil {
			return err
		}
		recs[i] = rec
	}
	return p.Write(ctx, recs...)
}

// Write is Send for records that are ready. Their topics carry the prefix. When too many records wait for the broker already, it waits
// for room. It must not be called where the client calls back.
func (p *Producer) Write(ctx context.Context, recs ...*kgo.Record) error {
	return p.Start(ctx, recs...)()
}

// Start is Write that returns at once, with the wait for the acknowledgements. What is started later may be written earlier.
func (p *Producer) Start(ctx context.Context, recs ...*kgo.Record) (wait func() error) {
	results := make(chan error, len(recs))
	hand := func() {
		for i, rec := range recs {
			if ctx.Err() != nil {
				for range recs[i:] {
					results <- context.Cause(ctx)
				}
				return
			}
			p.produce(ctx, (*kgo.Client).Produce, rec, func(_ *kgo.Record, err error) { results <- err })
		}
	}
	if len(recs) <= few && p.roomy() {
		hand() // a goroutine of its own would cost what the record itself costs
	} else {
		go hand() // the client has no way to be asked for room that ends with a context and leaves the records alone
	}
	return func() error {
		var errs []error
		for range recs {
			select {
			case err := <-results:
				if err != nil {
					errs = append(errs, err)
				}
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", ErrUnconfirmed, context.Cause(ctx))
			}
		}
		return errors.Join(errs...)
	}
}

// few is how many records are handed to the client at once when there is room for all of them, whoever else writes: a tenth of
// what it takes may wait then, so that ninety writers would have to come at the same moment.
const few = 100

// roomy says that hardly anything waits for the broker.
func (p *Producer) roomy() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.client.BufferedProduceRecords() < few*10
}

// Produce writes one record and calls done with the outcome. done must be quick, and must not block. It does not wait for room: done
// gets ErrBusy, as any outcome on a goroutine of the client, and the record that comes next may be taken again. The context is only where the
// record's trace comes from: a record that is on its way can't be called back, and one that was would take its neighbours with it.
func (p *Producer) Produce(ctx context.Context, rec *kgo.Record, done func(*kgo.Record, error)) {
	p.produce(ctx, (*kgo.Client).TryProduce, rec, done)
}

// handOver is how the client takes a record: Produce waits for room, TryProduce does not.
type handOver func(*kgo.Client, context.Context, *kgo.Record, func(*kgo.Record, error))

func (p *Producer) produce(ctx context.Context, to handOver, rec *kgo.Record, done func(*kgo.Record, error)) {
	topic := p.cfg.Name(rec.Topic)
	if limit := p.deps.maxBytes(topic); recordSize(rec)+batchOverhead > limit {
		done(rec, fmt.Errorf("writing to %s: %w: %d bytes, limit %d", rec.Topic, ErrTooLarge, recordSize(rec), limit))
		return
	}
	p.mu.RLock()
	cl := p.client
	p.mu.RUnlock()
	to(cl, context.WithoutCancel(ctx), rec, func(rec *kgo.Record, err error) {
		switch {
		case err == nil:
		case errors.Is(err, kgo.ErrMaxBuffered):
			err = fmt.Errorf("writing to %s: %w", rec.Topic, ErrBusy)
		case tooLarge(err):
			// The broker refuses a batch as a whole; which record was too much for it shows when each comes alone.
			p.later(rec, done)
			return
		case errors.Is(err, kgo.ErrClientClosed):
			err = unconfirmed(rec, err)
		default:
			if fenced(err) {
				p.replace(cl)
			}
			err = fmt.Errorf("writing to %s: %w", rec.Topic, err)
		}
		done(rec, err)
	})
}

func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// later sends a record alone, outside of the callback it is called from.
func (p *Producer) later(rec *kgo.Record, done func(*kgo.Record, error)) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		done(rec, unconfirmed(rec, kgo.ErrClientClosed))
		return
	}
	if p.waiting++; p.waiting == 1 {
		p.idle = make(chan struct{})
	}
	p.bg.Go(func() {
		done(rec, p.sendAlone(rec))
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			close(p.idle)
		}
	})
	p.mu.Unlock()
}

// sendAlone sends a record in a batch of its own. It is for topics that take less than their description says, so it may be slow.
func (p *Producer) sendAlone(rec *kgo.Record) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-p.ctx.Done():
		return unconfirmed(rec, kgo.ErrClientClosed)
	}
	cl, err := p.loner()
	if err != nil {
		return err
	}
	again := &kgo.Record{Topic: rec.Topic, Partition: rec.Partition, Key: rec.Key, Value: rec.Value, Headers: rec.Headers, Timestamp: rec.Timestamp}
	err = cl.ProduceSync(p.ctx, again).FirstErr()
	switch {
	case err == nil:
		rec.Partition, rec.Offset = again.Partition, again.Offset
		return nil
	case tooLarge(err):
		return fmt.Errorf("writing to %s: %w: %w", rec.Topic, ErrTooLarge, err)
	case errors.Is(err, kgo.ErrClientClosed), p.ctx.Err() != nil:
		return unconfirmed(rec, err)
	default:
		return fmt.Errorf("writing to %s: %w", rec.Topic, err)
	}
}

// loner returns the client for records that are sent alone. Only who has the turn calls it.
func (p *Producer) loner() (*kgo.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: %w", ErrUnconfirmed, kgo.ErrClientClosed)
	}
	if p.alone == nil {
		cl, err := NewClient(p.cfg, p.deps, p.role+"-producer-alone")
		if err != nil {
			return nil, err
		}
		p.alone = cl
	}
	return p.alone, nil
}

func unconfirmed(rec *kgo.Record, err error) error {
	return fmt.Errorf("writing to %s: %w: %w", rec.Topic, ErrUnconfirmed, err)
}

// fenced says that a client's producer id is of no more use.
func fenced(err error) bool {
	for _, k := range []error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber,
	} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// replace gets a new client for one whose producer was fenced, once however many records failed by it. It returns at once: a callback
// runs inside the client, which can't be closed from there.
func (p *Producer) replace(old *kgo.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != old || p.rebuilding || p.closed {
		return
	}
	p.rebuilding = true
	p.bg.Go(func() {
		// The old one goes first: two clients of one name can't both have their metrics registered.
		old.Close()
		for !p.rebuild() {
			select {
			case <-time.After(time.Second):
			case <-p.ctx.Done():
				return
			}
		}
	})
}

func (p *Producer) rebuild() bool {
	cl, err := p.connect()
	if err != nil { // a file with a certificate that is being replaced, say
		p.deps.log().Error("replacing a fenced producer", "error", err)
		return false
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.client, p.rebuilding = cl, false
	}
	p.mu.Unlock()
	if closed {
		cl.Close()
		return true
	}
	p.deps.log().Warn("replaced a fenced producer", "client", p.cfg.ClientID+"-"+p.role)
	return true
}

// Flush waits until everything written so far is acknowledged or has failed.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.RLock()
	cl := p.client
	p.mu.RUnlock()
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for the broker to confirm: %w", err)
	}
	p.mu.RLock()
	waiting, idle := p.waiting, p.idle
	p.mu.RUnlock()
	if waiting == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the broker to confirm: %w", context.Cause(ctx))
	}
}

// Ping asks the broker for a sign of life.
func (p *Producer) Ping(ctx context.Context) error {
	p.mu.RLock()
	cl := p.client
	p.mu.RUnlock()
	if err := cl.Ping(ctx); err != nil {
		return fmt.Errorf("reaching kafka: %w", err)
	}
	return nil
}

// Close drops what is not acknowledged, and does not wait for the broker. Flush first.
func (p *Producer) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	clients := []*kgo.Client{p.client, p.alone}
	p.mu.Unlock()
	p.cancel()
	for _, cl := range clients {
		if cl != nil {
			cl.Close()
		}
	}
	p.bg.Wait()
}

// recordSize is what a record takes before compression, within a few bytes.
func recordSize(rec *kgo.Record) int {
	n := len(rec.Key) + len(rec.Value) + 32
	for _, h := range rec.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}
