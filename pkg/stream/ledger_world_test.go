package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// engine counts what it is given, and shows it only a moment later.
type engine struct {
	mu   sync.Mutex
	seen map[string]int
	at   map[string]time.Time
}

func (e *engine) submit(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[key]++
	if e.seen[key] == 1 {
		e.at[key] = time.Now().Add(500 * time.Millisecond)
	}
}

func (e *engine) has(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[key] > 0 && time.Now().After(e.at[key])
}

// published collects outcomes by Task.
type published struct {
	mu  sync.Mutex
	all map[string]map[string]bool
}

func (p *published) add(task string, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[task] == nil {
		p.all[task] = map[string]bool{}
	}
	p.all[task][string(payload)] = true
}

// owner runs Tasks through a ledger until all are published, its ledger is lost, or its context ends. stall is called between steps.
type owner struct {
	l     *stream.Ledger
	e     *engine
	out   *published
	stall func()
	die   func() bool
}

func (o *owner) run(ctx context.Context, task string) {
	key := ledger.AttemptKey(task, 1)
	d := o.l.Driver(key, task)
	record := func(final bool, payload string) ledger.Record {
		return ledger.Record{Key: key, TaskID: task, Attempt: 1, Deadline: time.Unix(0, 0).AddDate(100, 0, 0), Final: final, Payload: json.RawMessage(payload)}
	}
	for ctx.Err() == nil && o.l.Err() == nil {
		o.stall()
		if o.die() {
			return
		}
		switch d.Action() {
		case ledger.ActionClaim:
			_ = o.l.ClaimFor(ctx, d, record(false, `{}`))
		case ledger.ActionLookUp:
			started := o.l.BrokerNow()
			d.LookedUp(o.e.has(key), started)
		case ledger.ActionWait:
			_ = o.l.WaitGuard(ctx, d)
		case ledger.ActionSubmit:
			// Not Ledger.MaySubmit: a process that is stopped as a whole has not seen the newer lease either.
			if d.MaySubmit(o.l.Mono()) {
				o.e.submit(key)
			}
		case ledger.ActionRun:
			if o.e.has(key) {
				_ = o.l.EndFor(ctx, d, record(true, fmt.Sprintf(`{"task":%q,"by":%q}`, task, o.l.Owner())))
			} else {
				time.Sleep(100 * time.Millisecond)
			}
		case ledger.ActionEnd:
			_ = o.l.EndFor(ctx, d, record(true, `{"expired":true}`))
		case ledger.ActionEmit:
			payload, _ := d.Ending()
			o.out.add(task, payload)
			return
		case ledger.ActionStop:
			return
		}
	}
}

// Processes that stall, crash and take the partition from each other, on a real wire: each attempt reaches the engine at most once, no
// Task is published in two ways, and in the end all are published.
func TestLedgerUnderManyOwners(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { manyOwners(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func manyOwners(t *testing.T, rnd *rand.Rand) {
	b := streamtest.Virtual(t)
	ledgerTopic(t, b)
	var mu sync.Mutex
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rnd.IntN(n)
	}
	e := &engine{seen: map[string]int{}, at: map[string]time.Time{}}
	out := &published{all: map[string]map[string]bool{}}
	tasks := []string{"a", "b", "c", "d", "e"}
	process := func(name string, wild bool) {
		lc := stream.DefaultLedgerConfig(1, name)
		lc.CheckpointEvery = time.Second
		l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, lc)
		if err != nil {
			return
		}
		defer l.Close(context.Background())
		o := &owner{l: l, e: e, out: out, stall: func() {}, die: func() bool { return false }}
		if wild {
			o.stall = func() {
				if chance(3) == 0 {
					time.Sleep(time.Duration(chance(20_000)) * time.Millisecond)
				}
			}
			o.die = func() bool { return chance(12) == 0 }
		}
		var wg sync.WaitGroup
		for _, task := range tasks {
			wg.Go(func() { o.run(t.Context(), task) })
		}
		wg.Wait()
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			time.Sleep(time.Duration(chance(20_000)) * time.Millisecond)
			process(fmt.Sprint("p", i), true)
		})
	}
	wg.Wait()
	process("last", false)
	for _, task := range tasks {
		require.LessOrEqual(t, e.seen[ledger.AttemptKey(task, 1)], 1, "task %s", task)
		require.Len(t, out.all[task], 1, "task %s", task)
	}
}
