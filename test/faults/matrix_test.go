package faults_test

import (
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

var (
	count    = flag.Int("faults", 0, "faults per engine; 0 is few")
	seed     = flag.Uint64("seed", 1, "seed of the plan")
	lanesOf  = flag.Int("lanes", 12, "Tasks at a time")
	atMost   = flag.Duration("at-most", 15*time.Minute, "time per engine, after which no more faults are begun")
	logsIn   = flag.String("logs", "", "folder for the executors' logs")
	onlyCell = flag.String("only", "", "only cells whose fault or moment has this in its name")
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	stdlog.SetOutput(io.Discard) // net/http quotes all the garbage that it gets
	os.Exit(m.Run())
}

// matrix injects n faults into Tasks on an engine, and fails the test for every wrong cell.
func matrix(t *testing.T, e *target, n, lanes int, withKill bool) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if *logsIn != "" {
		f, err := os.Create(filepath.Join(*logsIn, strings.ReplaceAll(e.name, " ", "-")+".log"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		log = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	var all []cell
	for _, c := range cells(withKill) {
		if *onlyCell == "" || strings.Contains(string(c.fault)+" / "+string(c.moment), *onlyCell) {
			all = append(all, c)
		}
	}
	var single, shared []job
	for _, j := range plan(all, n, rand.New(rand.NewPCG(*seed, 7))) {
		if j.fault == engineKill {
			shared = append(shared, j)
		} else {
			single = append(single, j)
		}
	}
	began := time.Now()
	ls := make([]*lane, lanes)
	for i := range ls {
		ls[i] = newLane(t, i, e, log)
	}
	var mu sync.Mutex
	var records []record
	keep := func(r record) {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
		if len(records)%25 == 0 {
			t.Logf("%s: %d of %d faults, %s", e.name, len(records), n, time.Since(began).Round(time.Second))
		}
	}
	todo := make(chan job, len(single))
	for _, j := range single {
		todo <- j
	}
	close(todo)
	var wg sync.WaitGroup
	for _, l := range ls {
		wg.Go(func() {
			for j := range todo {
				if time.Since(began) < *atMost {
					keep(l.inject(j, nil))
				}
			}
		})
	}
	wg.Wait()
	for len(shared) > 0 && time.Since(began) < *atMost {
		some := shared[:min(len(shared), lanes)]
		shared = shared[len(some):]
		m := newMeeting(len(some), e.kill)
		for i, j := range some {
			wg.Go(func() { keep(ls[i].inject(j, m)) })
		}
		wg.Wait()
	}
	rows, err := e.written()
	require.NoError(t, err)
	report(t, e, records, rows, n, lanes, time.Since(began))
}

// meeting kills the engine when all lanes are at their moments.
type meeting struct {
	wg   sync.WaitGroup
	once sync.Once
	kill func()
	done chan struct{}
}

func newMeeting(n int, kill func()) *meeting {
	m := &meeting{kill: kill, done: make(chan struct{})}
	m.wg.Add(n)
	return m
}

func (m *meeting) meet(l *lane) {
	m.wg.Done()
	m.wg.Wait()
	m.once.Do(func() {
		defer close(m.done) // also if it can't be started again, which ends this goroutine
		m.kill()
	})
	<-m.done
}

// report prints the matrix and fails for what is wrong.
func report(t *testing.T, e *target, records []record, rows map[int]int, n, lanes int, took time.Duration) {
	t.Helper()
	type sum struct{ right, total, duplicates, lost int }
	sums := map[cell]*sum{}
	whole := &sum{}
	missed := 0
	for _, r := range records {
		v := r.judge(rows[r.number], e)
		if sums[r.cell] == nil {
			sums[r.cell] = &sum{}
		}
		for _, s := range []*sum{sums[r.cell], whole} {
			s.total++
			if v.right() {
				s.right++
			}
			if v.duplicate {
				s.duplicates++
			}
			if v.lost {
				s.lost++
			}
		}
		if r.missed {
			missed++
		}
		if !v.right() {
			kind := "read"
			if r.write {
				kind = "write"
			}
			statement := ""
			if r.broken != nil {
				statement = " (" + r.broken.sql + ")"
			}
			t.Errorf("%s: %s, %s, a %s%s, coin %v, in %s: %s; failures %v, submissions %v, rows %d", r.id, r.fault, r.moment, kind, statement, r.coin,
				r.took.Round(time.Millisecond), strings.Join(v.wrong, "; "), r.failures, r.wire, rows[r.number])
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %d faults of %d in %s, seed %d, %d Tasks at a time: %d right, %d duplicates, %d lost, %d at another moment than planned\n\n",
		e.name, whole.total, n, took.Round(time.Second), *seed, lanes, whole.right, whole.duplicates, whole.lost, missed)
	b.WriteString("| fault |")
	for _, m := range moments {
		b.WriteString(" " + string(m) + " |")
	}
	b.WriteString(" duplicates | lost |\n|---|" + strings.Repeat("---|", len(moments)+2) + "\n")
	for _, f := range faults {
		fmt.Fprintf(&b, "| %s |", f)
		d, lost := 0, 0
		for _, m := range moments {
			s := sums[cell{f, m}]
			if s == nil {
				b.WriteString(" – |")
				continue
			}
			d, lost = d+s.duplicates, lost+s.lost
			fmt.Fprintf(&b, " %d/%d |", s.right, s.total)
		}
		fmt.Fprintf(&b, " %d | %d |\n", d, lost)
	}
	t.Log(b.String())
}
