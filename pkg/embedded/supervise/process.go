package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// child is one run of the process.
type child struct {
	process *os.Process
	pid     int
	ready   chan []byte   // the line that said so; closed without one when the process ended first
	ended   chan struct{} // closed when the process has been waited for
	err     error         // how it ended, once ended is closed
	stdin   *os.File
}

// launch starts a process. The goroutine that does it keeps its thread until the process has ended:
// the kernel's signal to the child is tied to the thread that started it, not to the whole parent.
func launch(cfg *Config) (*child, error) {
	c := &child{ready: make(chan []byte, 1), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.run(cfg, started)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cfg.Name, err)
	}
	return c, nil
}

func (c *child) run(cfg *Config, started chan<- error) {
	cmd := cfg.Command()
	// Its own group, so that Ctrl-C in a terminal reaches the parent alone, which then stops its
	// children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tieToParent(cmd.SysProcAttr)
	pipes, err := wire(cmd)
	if err == nil {
		if err = cmd.Start(); err != nil {
			pipes.close()
		}
	}
	if err != nil {
		started <- err
		return
	}
	pipes.closeChildSide()
	c.process, c.pid, c.stdin = cmd.Process, cmd.Process.Pid, pipes.stdin
	var readers sync.WaitGroup
	readers.Go(func() { logLines(pipes.stdout, cfg.Logger, slog.LevelInfo) })
	readers.Go(func() { logLines(pipes.stderr, cfg.Logger, slog.LevelWarn) })
	readers.Go(func() {
		defer close(c.ready)
		line, err := bufio.NewReader(pipes.ready).ReadBytes('\n')
		if err == nil {
			c.ready <- line
		}
	})
	started <- nil
	if _, err := c.stdin.Write(cfg.Input()); err != nil {
		cfg.Logger.Warn("cannot send the process its input", slog.Any("error", err))
	}
	c.err = cmd.Wait()
	_ = c.stdin.Close()
	readers.Wait()
	pipes.close()
	close(c.ended)
}

// pipes are the parent's ends of the child's descriptors 0 to 3, and the child's.
type pipes struct {
	stdin, stdout, stderr, ready *os.File
	childSide                    []*os.File
}

func wire(cmd *exec.Cmd) (*pipes, error) {
	var p pipes
	var err error
	pair := func(parentReads bool) (parent, child *os.File) {
		r, w, pipeErr := os.Pipe()
		if pipeErr != nil {
			err = errors.Join(err, pipeErr)
			return nil, nil
		}
		parent, child = w, r
		if parentReads {
			parent, child = r, w
		}
		p.childSide = append(p.childSide, child)
		return parent, child
	}
	var in, out, errs, ready *os.File
	p.stdin, in = pair(false)
	p.stdout, out = pair(true)
	p.stderr, errs = pair(true)
	p.ready, ready = pair(true)
	if err != nil {
		p.close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, out, errs, []*os.File{ready}
	return &p, nil
}

func (p *pipes) closeChildSide() {
	for _, f := range p.childSide {
		_ = f.Close()
	}
	p.childSide = nil
}

func (p *pipes) close() {
	p.closeChildSide()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr, p.ready} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func logLines(r io.Reader, logger *slog.Logger, level slog.Level) {
	reader := bufio.NewReaderSize(r, 16<<10)
	for {
		line, isPrefix, err := reader.ReadLine()
		if err != nil {
			return
		}
		if isPrefix {
			line = append(append([]byte{}, line...), "…"...)
			for isPrefix && err == nil {
				_, isPrefix, err = reader.ReadLine()
			}
		}
		logger.Log(context.Background(), level, "process says", slog.String("line", string(line)))
	}
}

// signal sends a signal to the process. One that has ended already is left alone: os.Process knows
// it by more than its number.
func (c *child) signal(sig syscall.Signal) { _ = c.process.Signal(sig) }

// stop ends the process: SIGTERM, then SIGKILL after the timeout or when the context ends.
func (c *child) stop(ctx context.Context, timeout time.Duration) {
	c.signal(syscall.SIGTERM)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.ended:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	c.signal(syscall.SIGKILL)
	<-c.ended
}
