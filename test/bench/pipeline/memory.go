package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
)

// memoryResult is the resident memory of `pointsman up` while it runs Tasks for real.
type memoryResult struct {
	Tasks     int     `json:"tasks"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	Succeeded int     `json:"succeeded"`
	// Processes are by name: the command itself, and each engine in its child.
	Processes map[string]*resident `json:"processes"`
}

// resident is a process's memory in MB: before the first Task, at each tenth of them, after the last, and at its highest.
type resident struct {
	Start  float64   `json:"start"`
	Tenths []float64 `json:"tenths"`
	End    float64   `json:"end"`
	Peak   float64   `json:"peak"`
}

// small is what each Task asks: the point is what pointsman keeps, not what the engine computes. Each has a text of its own, four
// have one fingerprint.
func small(i int) query.Task {
	sql := [...]string{
		"SELECT n_name FROM tpch.nation WHERE n_nationkey = %d", "SELECT count() FROM tpch.region WHERE r_regionkey < %d",
		"SELECT n_regionkey, count() AS n FROM tpch.nation WHERE n_nationkey <> %d GROUP BY n_regionkey",
		"SELECT n_name, r_name FROM tpch.nation JOIN tpch.region ON n_regionkey = r_regionkey WHERE n_nationkey > %d LIMIT 5",
	}[i%4]
	sla, timeout := 30.0, 120.0
	return query.Task{
		ID: fmt.Sprintf("memory-%06d", i), SQL: fmt.Sprintf(sql, i), Dialect: "clickhouse", Tenant: fmt.Sprintf("tenant_%02d", i%20),
		User: "bench", SLASeconds: &sla, TimeoutSeconds: &timeout,
	}
}

func measureMemory(ctx context.Context, g *ground, o options) (_ *memoryResult, err error) {
	binary := filepath.Join(g.dir, "pointsman")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/pointsman/pointsman/services/pointsman").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building pointsman: %w\n%s", err, text)
	}
	up, err := startUp(ctx, binary)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, up.stop()) }()
	out := &memoryResult{Tasks: o.memoryTasks, Processes: map[string]*resident{}}
	if err := sleepUntil(ctx, time.Now().Add(3*time.Second)); err != nil {
		return nil, err
	}
	if err := out.look(up.pid(), func(r *resident, mb float64) { r.Start = mb }); err != nil {
		return nil, err
	}
	peaks := every(ctx, 500*time.Millisecond, func(context.Context) error {
		return out.look(up.pid(), func(*resident, float64) {})
	})
	began := time.Now()
	err = up.run(ctx, o, func(done int) {
		if done%max(1, o.memoryTasks/10) == 0 {
			var total float64
			_ = out.look(up.pid(), func(r *resident, mb float64) { r.Tenths, total = append(r.Tenths, mb), total+mb })
			g.say("  %d tasks after %s: %.0f MB in all", done, time.Since(began).Round(time.Second), total)
		}
	}, &out.Succeeded)
	out.Seconds = time.Since(began).Seconds()
	out.PerSecond = float64(o.memoryTasks) / out.Seconds
	if err = errors.Join(err, peaks()); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, time.Now().Add(12*time.Second)); err != nil { // a sweep of the broker, a collection of the runtime
		return nil, err
	}
	return out, out.look(up.pid(), func(r *resident, mb float64) { r.End = mb })
}

var looking sync.Mutex

// look reads the memory of a process and its children.
func (m *memoryResult) look(pid int, note func(r *resident, mb float64)) error {
	looking.Lock()
	defer looking.Unlock()
	found, err := family(pid)
	if err != nil {
		return err
	}
	for name, mb := range found {
		r := m.Processes[name]
		if r == nil {
			r = &resident{}
			m.Processes[name] = r
		}
		r.Peak = max(r.Peak, mb)
		note(r, mb)
	}
	return nil
}

func (m *memoryResult) table(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\nmemory of `pointsman up`, MB resident, %d tasks at %.0f/s, %d succeeded\n", m.Tasks, m.PerSecond, m.Succeeded)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "process\tstart\thalf\tend\tpeak\t")
	for _, name := range slices.Sorted(maps.Keys(m.Processes)) {
		r := m.Processes[name]
		half := 0.0
		if len(r.Tenths) > 0 {
			half = r.Tenths[len(r.Tenths)/2]
		}
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t\n", name, r.Start, half, r.End, r.Peak)
	}
	_ = w.Flush()
}

// up is a running `pointsman up`.
type up struct {
	cmd   *exec.Cmd
	kafka string
	ended chan error
}

var kafkaLine = regexp.MustCompile(`^\s+Kafka\s+(\S+)`)

func startUp(ctx context.Context, binary string) (*up, error) {
	cmd := exec.Command(binary, "up", "--free-ports", "--scale", "0.01", "--http-addr", "127.0.0.1:0")
	cmd.Cancel = nil
	greeting, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting pointsman up: %w", err)
	}
	u := &up{cmd: cmd, ended: make(chan error, 1)}
	found := make(chan string, 1)
	go func() {
		var said []byte
		lines := bufio.NewScanner(greeting)
		for lines.Scan() {
			if m := kafkaLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
			if len(said) < 1<<16 {
				said = append(append(said, lines.Bytes()...), '\n')
			}
		}
		if err := cmd.Wait(); err != nil {
			u.ended <- fmt.Errorf("pointsman up: %w\n%s", err, said)
			return
		}
		u.ended <- nil
	}()
	select {
	case u.kafka = <-found:
		return u, nil
	case err := <-u.ended:
		return nil, errors.Join(err, errors.New("pointsman up ended before it was up"))
	case <-time.After(patience):
		return nil, errors.Join(errors.New("pointsman up is not up after "+patience.String()), u.stop())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), u.stop())
	}
}

func (u *up) pid() int { return u.cmd.Process.Pid }

func (u *up) stop() error {
	_ = u.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-u.ended:
		return err
	case <-time.After(patience):
		_ = u.cmd.Process.Kill()
		return errors.Join(errors.New("pointsman up did not stop, and was killed"), <-u.ended)
	}
}

// run keeps a number of Tasks open until all have their Outcome.
func (u *up) run(ctx context.Context, o options, progress func(done int), succeeded *int) error {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.ClientID = []string{u.kafka}, "bench"
	t := topics{Config: cfg}
	cl, err := t.client(kgo.DefaultProduceTopic(event.TopicRequests), kgo.ProducerLinger(0), kgo.ConsumeTopics(event.TopicOutcomes),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	sent, open := 0, map[string]bool{}
	for done := 0; done < o.memoryTasks; {
		for len(open) < o.inFlight && sent < o.memoryTasks {
			task := small(sent)
			rec, err := publish.Record(workload.Arrival{Task: task})
			if err != nil {
				return err
			}
			cl.Produce(ctx, rec, nil)
			open[task.ID] = true
			sent++
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		fetches := cl.PollFetches(wait)
		late := wait.Err()
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if late != nil {
			return fmt.Errorf("%d tasks are open and none has ended for %s", len(open), patience)
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			id := string(r.Key)
			if !open[id] {
				return
			}
			var outcome event.Outcome
			if err := outcome.UnmarshalJSON(r.Value); err != nil {
				failed = err
				return
			}
			if outcome.Status == event.Succeeded {
				*succeeded++
			}
			delete(open, id)
			done++
			progress(done)
		})
		if failed != nil {
			return fmt.Errorf("reading an outcome: %w", failed)
		}
	}
	return nil
}
