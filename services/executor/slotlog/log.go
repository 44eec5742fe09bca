// Package slotlog asks for slots in the topic `slots` on behalf of one executor, and reads there who holds one.
//
// It knows what its own attempts have asked for and tells them when they hold it, and keeps the log short for those who start to read
// it. What the records come to is decided in services/executor/slots; who stands where in this process is services/executor/line's.
// Without a cap, in its configuration or in the log, nothing is written or read.
package slotlog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/executor/slots"
)

// Config is what a Log needs.
type Config struct {
	Owner string // unique per process start
	Kafka stream.Config
	Deps  stream.Deps
	Log   *slog.Logger
	// StateEvery is how many records may come until a state record spares readers from what is before it; 0 means 1000.
	StateEvery int64
	// Took hears how long it took to get a slot that was free; nil hears nothing.
	Took func(time.Duration)
}

// Part is a partition of decisions with the epoch of its ledger's lease here.
type Part struct {
	ID    int32
	Epoch int64
}

// Log is the executor's side of the topic. It is safe for concurrent use, and never calls back with a lock held.
type Log struct {
	cfg  Config
	wake chan struct{} // there is something to write

	mu      sync.Mutex
	caps    event.Caps // of the configuration
	news    bool       // they may be other ones than the log's, and are to be written, or on their way
	capsAt  int64      // seq of their record on its way, 0 if there is none
	on      bool
	onCh    chan struct{} // closed when on
	fold    *slots.Fold   // nil until what others hold is known, when readyCh is closed
	readyCh chan struct{}
	at      time.Time // append time of the newest record, and when it was read
	readAt  time.Time
	state   int64 // offset of the newest state record, and its time
	aged    time.Time
	clocks  bool // it was said that times are not the broker's
	seq     int64
	parts   map[int32]int64
	own     map[string]*own
	out     []event.SlotRecord // to be written
	inWork  []event.SlotRecord // being written, before those
	sent    time.Time          // since when the broker has owed an answer; zero if it does not

	unread, unwritten string // why the topic can't be read or written
	turned            chan struct{}
}

// own is an attempt of this process.
type own struct {
	part    Part
	want    event.SlotWant
	seq     int64 // of what was written for it, 0 if nothing was
	again   bool  // the log has lost, or seems to have lost, what was written before that
	runs    bool  // it has its slot here, and is on its way to an engine
	read    bool  // what was written was read back
	held    bool
	began   time.Time
	changed chan struct{}   // closed when it is read back
	answer  func(held bool) // nil once it is held, or if nobody waits
}

// New makes a Log that has read nothing yet.
func New(cfg Config, caps event.Caps) *Log {
	if cfg.StateEvery == 0 {
		cfg.StateEvery = 1000
	}
	if cfg.Took == nil {
		cfg.Took = func(time.Duration) {}
	}
	l := &Log{
		cfg: cfg, wake: make(chan struct{}, 1), onCh: make(chan struct{}), readyCh: make(chan struct{}), parts: map[int32]int64{}, own: map[string]*own{}, turned: make(chan struct{}),
		state: -1,
	}
	l.SetCaps(caps)
	return l
}

// SetCaps says what the configuration's caps are now. They hold for all executors from the record on that says so: the newest word
// counts, whoever says it.
func (l *Log) SetCaps(caps event.Caps) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caps = caps
	if !l.on && !slots.Any(caps) {
		return
	}
	changing := l.capsAt > 0
	l.news, l.capsAt = true, 0
	if !l.on {
		l.on = true
		close(l.onCh)
		for id, epoch := range l.parts {
			l.announce(Part{id, epoch})
		}
	}
	if l.fold != nil {
		l.settleCaps(changing)
	}
}

// Needed reports whether an attempt needs a slot that all executors share.
func (l *Log) Needed(w event.SlotWant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.covers(w)
}

// covers goes by the caps of the log, and by those of the configuration as long as it may have to write them.
func (l *Log) covers(w event.SlotWant) bool {
	return l.on && ((l.fold != nil && slots.Covers(l.fold.Caps(), w)) || ((l.fold == nil || l.news) && slots.Covers(l.caps, w)))
}

// Ask asks for a slot. Unless it is freed before, answer is called once when it is held, and once before that if it is not held when it
// is read.
func (l *Log) Ask(p Part, w event.SlotWant, answer func(held bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &own{part: p, want: w, began: time.Now(), changed: make(chan struct{}), answer: answer}
	l.own[w.AttemptID] = o
	l.write(o, event.SlotAsk)
}

// Runs says that an attempt is on its way to an engine, whether it has asked for a slot or needed none.
func (l *Log) Runs(p Part, w event.SlotWant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.own[w.AttemptID]
	if o == nil {
		o = &own{part: p, want: w, changed: make(chan struct{})}
		l.own[w.AttemptID] = o
	}
	o.runs = true
	if o.seq == 0 && l.covers(w) {
		l.write(o, event.SlotRun)
	}
}

// Free gives back what an attempt has asked for. A second call does nothing.
func (l *Log) Free(attemptID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.own[attemptID]
	if o == nil {
		return
	}
	delete(l.own, attemptID)
	ask := func(r event.SlotRecord) bool { return r.Kind == event.SlotAsk && r.Seq == o.seq }
	if i := slices.IndexFunc(l.out, ask); i >= 0 && !o.again { // it never left; asks of those that gave up would pile up in an outage
		l.out = slices.Delete(l.out, i, i+1)
		return
	}
	if o.seq > 0 {
		l.put(event.SlotRecord{Kind: event.SlotFree, Seq: o.seq, Partition: o.part.ID, Epoch: o.part.Epoch, SlotWant: event.SlotWant{AttemptID: attemptID}})
	}
}

// Take says that a partition is this process's from an epoch on, and what its owners before left at engines.
func (l *Log) Take(p Part, open []event.SlotWant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(p.ID)
	l.parts[p.ID] = p.Epoch
	for _, w := range open {
		l.own[w.AttemptID] = &own{part: p, want: w, runs: true, changed: make(chan struct{})}
	}
	if l.on {
		l.announce(p)
	}
}

// announce writes what runs before it makes the rest void, so that no slot is given away in between.
func (l *Log) announce(p Part) {
	for _, o := range l.own {
		if o.part == p && o.runs && o.seq == 0 && (l.fold == nil || l.covers(o.want)) {
			l.write(o, event.SlotRun)
		}
	}
	l.seq++
	l.put(event.SlotRecord{Kind: event.SlotTake, Seq: l.seq, Partition: p.ID, Epoch: p.Epoch})
}

// Drop forgets a partition that is somebody else's. What it has left at engines its next owner knows from the ledger.
func (l *Log) Drop(partition int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(partition)
}

func (l *Log) forget(partition int32) {
	delete(l.parts, partition)
	for id, o := range l.own {
		if o.part.ID == partition {
			delete(l.own, id)
		}
	}
}

// Held is how many attempts hold a slot of a cluster, in all executors.
func (l *Log) Held(cluster string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fold == nil {
		return 0
	}
	return l.fold.Held(cluster)
}

// Read is closed when it is known what an attempt's ask came to. It is nil if none was written.
func (l *Log) Read(attemptID string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.own[attemptID]; o != nil && o.seq > 0 {
		return o.changed
	}
	return nil
}

// Turned is closed when the topic can't be read or written any more, or can be again.
func (l *Log) Turned() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turned
}

// Err says why nobody can have a slot that a cap applies to; nil if they can, or if there is no cap.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.on:
		return nil
	case l.trouble() != "":
		return errors.New(l.trouble())
	case l.fold == nil:
		return errors.New("the slots have not been read yet")
	default:
		return nil
	}
}

// Why says what an attempt waits for; empty if it has not asked for anything here.
func (l *Log) Why(attemptID string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.own[attemptID]
	switch {
	case o == nil || o.seq == 0 || o.held:
		return ""
	case l.trouble() != "":
		return "the slots that all executors share can't be had: " + l.trouble()
	case l.fold == nil || !o.read:
		return "it is not known yet who holds the slots that all executors share"
	}
	var full []string
	for _, f := range l.fold.Why(o.want) {
		full = append(full, fmt.Sprintf("%s %s has %d of %d", f.Kind, f.Name, f.Held, f.Cap))
	}
	return strings.Join(full, ", ")
}

// sweep writes what runs and was not covered before.
func (l *Log) sweep() {
	for _, o := range l.own {
		if o.runs && o.seq == 0 && l.covers(o.want) {
			l.write(o, event.SlotRun)
		}
	}
}

func (l *Log) write(o *own, kind event.SlotKind) {
	l.seq++
	o.seq = l.seq
	l.put(event.SlotRecord{Kind: kind, Seq: o.seq, Partition: o.part.ID, Epoch: o.part.Epoch, SlotWant: o.want})
}

func (l *Log) put(r event.SlotRecord) {
	r.Owner = l.cfg.Owner
	l.out = append(l.out, r)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Log) trouble() string { return cmp.Or(l.unwritten, l.unread) }

// turn notes why the topic can't be read or written; empty means that it can.
func (l *Log) turn(what *string, why string) {
	before := l.trouble()
	*what = why
	if (before == "") != (l.trouble() == "") {
		close(l.turned)
		l.turned = make(chan struct{})
	}
}
