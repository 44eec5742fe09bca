package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/pointsman/pointsman/test/ports"
)

// Bounds of what a slow machine may need.
const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

const clusterID = "4L6g3nShT-eMCtK--X86sw" // as in kafka.sh

// Cluster is a running Kafka. Its methods fail the test that started it when they can't do what they say.
type Cluster struct {
	t     testing.TB
	lib   string
	nodes []node

	mu    sync.Mutex
	procs []*process // by index of the node, nil while it is down

	spawn chan func()
}

// process is a broker that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start fetches Kafka if need be, starts the brokers and waits until all of them are ready. The test's end stops them.
func Start(t testing.TB, opts Options) *Cluster {
	t.Helper()
	lib := fetch(t)
	count := max(opts.Brokers, 1)
	c := &Cluster{t: t, lib: lib, procs: make([]*process, count), spawn: make(chan func())}
	dir := t.TempDir()
	for i := range count {
		home := filepath.Join(dir, fmt.Sprintf("node-%d", i+1))
		c.nodes = append(c.nodes, node{id: i + 1, port: ports.Free(t), controller: ports.Free(t), home: home})
	}
	go spawner(c.spawn)
	t.Cleanup(c.Stop)
	var group errgroup.Group
	for i := range c.nodes {
		group.Go(func() error { return c.format(i, opts.Properties) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("formatting Kafka's log folders: %v", err)
	}
	for i := range c.nodes {
		c.start(i)
	}
	for i := range c.nodes {
		c.Ready(i)
	}
	return c
}

// Addrs are the brokers' addresses, those of brokers that are down too.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.addr()
	}
	return addrs
}

// ID is the node id that Kafka's metadata has for a broker: leaders are named by it.
func (c *Cluster) ID(i int) int32 { return int32(c.nodes[i].id) }

// Index is the broker with a node id.
func (c *Cluster) Index(id int32) int { return int(id) - 1 }

// Kill ends a broker as a power cut would (SIGKILL).
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	c.end(i, syscall.SIGKILL)
}

// Terminate lets a broker hand over its leaderships and end (SIGTERM).
func (c *Cluster) Terminate(i int) {
	c.t.Helper()
	c.end(i, syscall.SIGTERM)
}

// Pause makes a broker stand still with its connections open (SIGSTOP), as a long garbage collection would.
func (c *Cluster) Pause(i int) { c.signal(i, syscall.SIGSTOP) }

// Resume lets a paused broker go on.
func (c *Cluster) Resume(i int) { c.signal(i, syscall.SIGCONT) }

// Restart starts a broker again on its data and waits until it is ready. One that runs is terminated first.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	if c.proc(i) != nil {
		c.Terminate(i)
	}
	c.start(i)
	c.Ready(i)
}

// Ready waits until a broker answers and knows itself in the cluster.
func (c *Cluster) Ready(i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := c.ask(ctx, i)
		if err == nil {
			return
		}
		p := c.proc(i)
		if p == nil {
			c.t.Fatalf("broker %d is down", i)
		}
		select {
		case <-p.ended:
			c.t.Fatalf("broker %d ended while it was starting:\n%s", i, c.tail(i))
		case <-ctx.Done():
			c.t.Fatalf("broker %d is not ready after %s: %v\n%s", i, readyTimeout, err, c.tail(i))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends all brokers. It is called by the test's end; a second call does nothing.
func (c *Cluster) Stop() {
	c.mu.Lock()
	procs := c.procs
	c.procs = make([]*process, len(c.nodes))
	spawn := c.spawn
	c.spawn = nil
	c.mu.Unlock()
	if spawn == nil {
		return
	}
	// Terminating would take a minute when the others of a quorum are gone, and the data goes away anyway.
	for _, p := range procs {
		if p != nil {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
	close(spawn)
	if c.t.Failed() {
		for i := range c.nodes {
			c.t.Logf("log of broker %d:\n%s", i, c.tail(i))
		}
	}
}

func (c *Cluster) ask(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// Every broker is asked by itself: others may know of it before it serves.
	client, err := kgo.NewClient(kgo.SeedBrokers(c.nodes[i].addr()), kgo.RequestRetries(0), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err != nil {
		return err
	}
	for _, b := range brokers {
		if b.NodeID == c.ID(i) {
			return nil
		}
	}
	return errors.New("it is not registered yet")
}

func (c *Cluster) format(i int, extra map[string]string) error {
	n := c.nodes[i]
	if err := os.MkdirAll(n.home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(n.file(), []byte(properties(n, c.nodes, extra)), 0o600); err != nil {
		return err
	}
	out, err := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", c.lib+"/*",
		"kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.file()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(string(out), 5))
	}
	return nil
}

func (c *Cluster) start(i int) {
	c.t.Helper()
	n := c.nodes[i]
	log, err := os.OpenFile(c.logFile(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatalf("opening the log of broker %d: %v", i, err)
	}
	defer log.Close()
	cmd := exec.Command("java", "-Xmx512m", "-Xms256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", c.lib+"/*", "kafka.Kafka", n.file())
	cmd.Dir = n.home
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent
	started := make(chan error)
	c.mu.Lock()
	spawn := c.spawn
	c.mu.Unlock()
	if spawn == nil {
		c.t.Fatalf("starting broker %d: the cluster is stopped", i)
	}
	spawn <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		c.t.Fatalf("starting broker %d: %v", i, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is for its log to say
		close(p.ended)
	}()
	c.mu.Lock()
	c.procs[i] = p
	c.mu.Unlock()
}

// spawner starts processes from a thread that lives as long as the cluster: the kernel kills the brokers when the
// thread that started them ends, and so with the test's process, however that ends.
func spawner(calls <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for call := range calls {
		call()
	}
}

func (c *Cluster) end(i int, s syscall.Signal) {
	c.t.Helper()
	p := c.proc(i)
	if p == nil {
		c.t.Fatalf("broker %d is down already", i)
	}
	c.signal(i, s)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		c.t.Errorf("broker %d did not end within %s of %s, and is killed", i, stopTimeout, s)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	c.mu.Lock()
	c.procs[i] = nil
	c.mu.Unlock()
}

func (c *Cluster) signal(i int, s syscall.Signal) {
	c.t.Helper()
	p := c.proc(i)
	if p == nil {
		c.t.Fatalf("broker %d is down", i)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("sending %s to broker %d: %v", s, i, err)
	}
}

func (c *Cluster) proc(i int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[i]
}

func (c *Cluster) logFile(i int) string { return filepath.Join(c.nodes[i].home, "log") }

func (c *Cluster) tail(i int) string {
	text, err := os.ReadFile(c.logFile(i))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), 30)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
