// Package demo runs pointsman's main job on a workload made of real arrivals, breaks an engine in the middle of it, and says
// what came of it.
//
// It stands outside: it publishes as any producer would, follows the topics as any reader would, and asks ClickHouse as a
// dashboard would. Every figure it prints is read from one of those.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Options say what the demo runs on.
type Options struct {
	Kafka   stream.Config
	History history.Config
	// Window is how long the demo has; arrivals end at 70 % of it.
	Window time.Duration
	Count  int
	Seed   uint64
	// Prefix begins every task id: on a lasting broker each run needs one of its own.
	Prefix string
	// Break is called under load, at the moment when the interactive queue is longest; nil breaks nothing.
	Break func()
	// Progress is where the live view goes; nil shows none. Terminal says that it can move the cursor.
	Progress io.Writer
	Terminal bool
	// Width is the terminal's width, asked for with each line; nil means 80.
	Width func() int
	Log   *slog.Logger
}

// breakAt is the share of the arrivals' time at which the engine is broken: shortly after the burst has begun.
const breakAt = 0.63

// arrivalShare is the part of the window that arrivals take; see package workload.
const arrivalShare = 0.7

// drainTime bounds how long the demo waits after its window for what is still open: a Task's own timeout ends it before.
const drainTime = 3 * time.Minute

// Run publishes the workload, follows it to its end, and reports.
func Run(ctx context.Context, opts Options) (Report, error) {
	arrivals, err := workload.Generate(workload.Options{Window: opts.Window, Count: opts.Count, Seed: opts.Seed, Prefix: opts.Prefix})
	if err != nil {
		return Report{}, fmt.Errorf("making the workload: %w", err)
	}
	client, err := publish.NewClient(opts.Kafka.Brokers, opts.Kafka.Topic(event.TopicRequests), false)
	if err != nil {
		return Report{}, fmt.Errorf("connecting the producer: %w", err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(ctx, opts.Window+drainTime)
	defer cancel()
	board := newBoard(arrivals)
	followed := make(chan error, 1)
	followCtx, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	go func() { followed <- board.follow(followCtx, opts.Kafka, opts.Log) }()
	shown := make(chan struct{})
	showCtx, stopShowing := context.WithCancel(ctx)
	go func() { defer close(shown); show(showCtx, opts, board, len(arrivals)) }()
	defer func() { stopShowing(); <-shown }()

	broken := opts.breakLater(ctx, board)
	if _, err := publish.Run(ctx, client, slices.Values(arrivals), nil); err != nil {
		if ctx.Err() != nil {
			return Report{}, board.stopped()
		}
		return Report{}, fmt.Errorf("publishing the workload: %w", err)
	}
	if err := <-broken; err != nil {
		return Report{}, err
	}
	board.allSent()
	select {
	case <-board.done:
	case err := <-followed:
		return Report{}, fmt.Errorf("following the topics: %w", err)
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Report{}, board.stopped()
		}
		// What is still open counts as lost; the report says how many.
	}
	stopShowing()
	<-shown
	return report(context.WithoutCancel(ctx), opts, board)
}

// ErrStopped is wrapped by the error of a demo that was stopped before its end.
var ErrStopped = errors.New("stopped before the demo's end")

// stopped says how far the demo had come.
func (b *board) stopped() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Errorf("%w: %d of %d tasks have an outcome", ErrStopped, len(b.ended), len(b.kind))
}

// breakLater breaks the engine when its time has come. The channel gets nil or the error, once.
func (o Options) breakLater(ctx context.Context, b *board) <-chan error {
	out := make(chan error, 1)
	if o.Break == nil {
		out <- nil
		return out
	}
	after := time.Duration(float64(o.Window) * arrivalShare * breakAt)
	go func() {
		select {
		case <-ctx.Done():
			out <- ctx.Err()
		case <-time.After(after):
			b.note("killing the interactive engine's process")
			o.Break()
			out <- nil
		}
	}()
	return out
}
