package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/services/profiler"
)

// profilerResult is rows per second of the profiler, from the topics into the history, against the driver alone.
type profilerResult struct {
	Rows          int64            `json:"rows"`
	RowsByTable   map[string]int64 `json:"rowsByTable"`
	OursPerSecond []float64        `json:"oursPerSecond"`
	RawPerSecond  []float64        `json:"rawPerSecond"`
	Ratio         float64          `json:"ratio"`
	Goal          float64          `json:"goal"`
	// SeveralPerSecond is the raw insert with all tables at once, as the profiler does it.
	SeveralPerSecond []float64 `json:"severalPerSecond"`
	RatioSeveral     float64   `json:"ratioSeveral"`
	// OursCPU is the profiler's own processor time for each row, in microseconds; the engine's is not in it.
	OursCPU []float64 `json:"oursCPU"`
}

const profilerGoal = 0.8

// tables are those that the profiler fills from the four event topics.
var tables = map[string]string{
	"requests": event.TopicRequests, "decisions": event.TopicDecisions, "attempts": event.TopicAttempts, "outcomes": event.TopicOutcomes,
}

func measureProfiler(ctx context.Context, g *ground, o options) (_ *profilerResult, err error) {
	t, want, err := events(ctx, g, o.events)
	if err != nil {
		return nil, fmt.Errorf("making events: %w", err)
	}
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
	out := &profilerResult{RowsByTable: want, Goal: profilerGoal}
	for _, n := range want {
		out.Rows += n
	}
	for round := range o.rounds {
		db, err := g.history(ctx, fmt.Sprintf("bench_profiler%d", round))
		if err != nil {
			return nil, err
		}
		ours, err := storeOnce(ctx, g, t, round, db, out.Rows)
		if err != nil {
			return nil, fmt.Errorf("the profiler: %w", err)
		}
		all, err := contents(ctx, db)
		if err != nil {
			return nil, err
		}
		raw, err := rawOnce(ctx, g, round, 1, all, out.Rows)
		if err != nil {
			return nil, fmt.Errorf("the raw insert: %w", err)
		}
		several, err := rawOnce(ctx, g, round, len(all), all, out.Rows)
		if err != nil {
			return nil, fmt.Errorf("the raw insert by several: %w", err)
		}
		g.say("  round %d: profiler %.0f rows/s (%.0f µs of processor each), raw insert %.0f rows/s, all tables at once %.0f; ratios %.2f, %.2f", round+1,
			ours.perSecond, ours.cpu, raw, several, ours.perSecond/raw, ours.perSecond/several)
		out.OursPerSecond, out.RawPerSecond = append(out.OursPerSecond, ours.perSecond), append(out.RawPerSecond, raw)
		out.SeveralPerSecond, out.OursCPU = append(out.SeveralPerSecond, several), append(out.OursCPU, ours.cpu)
		if err := g.dropHistory(ctx, db); err != nil {
			return nil, err
		}
	}
	out.Ratio, out.RatioSeveral = ratio(out.OursPerSecond, out.RawPerSecond), ratio(out.OursPerSecond, out.SeveralPerSecond)
	return out, nil
}

// events runs Tasks through a real router and a real executor, so that the topics hold what they hold in service. The numbers of
// records by table come back.
func events(ctx context.Context, g *ground, n int) (_ topics, want map[string]int64, err error) {
	s, err := newSide(ctx, g, "events")
	if err != nil {
		return topics{}, nil, err
	}
	defer s.producer.Close()
	db, err := g.history(ctx, "bench_events")
	if err != nil {
		return s.topics, nil, err
	}
	tasks, err := reads("events", n)
	if err != nil {
		return s.topics, nil, err
	}
	quiet, err := s.signals(ctx)
	if err != nil {
		return s.topics, nil, err
	}
	stopRouter, err := startRouter(ctx, g, s.topics, db)
	if err != nil {
		return s.topics, nil, errors.Join(err, quiet())
	}
	stopExecutor, err := startExecutor(ctx, g, s.topics, nil)
	if err != nil {
		return s.topics, nil, errors.Join(err, stopRouter(), quiet())
	}
	began := time.Now()
	_, err = func() (pace, error) {
		if err := s.requests(ctx, tasks, 1); err != nil {
			return pace{}, err
		}
		return s.follow(ctx, event.TopicOutcomes, 20*time.Millisecond, int64(n))
	}()
	g.say("  events of %d tasks by router and executor in %s", n, time.Since(began).Round(time.Millisecond))
	if err = errors.Join(err, stopRouter(), stopExecutor(), quiet()); err != nil {
		return s.topics, nil, err
	}
	want = map[string]int64{}
	for table, topic := range tables {
		if want[table], err = s.count(ctx, topic); err != nil {
			return s.topics, nil, err
		}
	}
	return s.topics, want, nil
}

// tail is the share of the rows that is not waited for: what is left at the end waits for more, up to a second.
const tail = 0.03

// storeOnce has the real profiler store all events.
func storeOnce(ctx context.Context, g *ground, t topics, round int, db history.Config, rows int64) (_ rate, err error) {
	tel, err := g.telemetry(ctx)
	if err != nil {
		return rate{}, err
	}
	defer func() { err = errors.Join(err, tel.Stop(context.WithoutCancel(ctx))) }()
	look, err := history.Open(db)
	if err != nil {
		return rate{}, err
	}
	defer func() { _ = look.Close() }()
	cfg := profiler.Default()
	cfg.Kafka, cfg.History, cfg.HTTP.Address, cfg.Telemetry.Admin.Address = t.of("profiler"), db, "", ""
	cfg.Consumer.Group = fmt.Sprintf("profiler%d", round)
	app, err := profiler.New(ctx, cfg, tel.For("profiler"))
	if err != nil {
		return rate{}, err
	}
	defer func() { err = errors.Join(err, app.Err(), app.Stop(context.WithoutCancel(ctx))) }()
	profiled, err := g.profiling("profiler")
	if err != nil {
		return rate{}, err
	}
	defer profiled()
	if err := app.Start(ctx); err != nil {
		return rate{}, err
	}
	count := func(ctx context.Context) (int64, error) { return stored(ctx, look) }
	p, err := follow(ctx, 20*time.Millisecond, int64((1-tail)*float64(rows)), count)
	if err != nil {
		return rate{}, err
	}
	profiled()
	// All of it has to be there, and no row twice, or the rate is worth nothing.
	if _, err := follow(ctx, 20*time.Millisecond, rows, count); err != nil {
		return rate{}, err
	}
	if n, err := count(ctx); err != nil || n != rows {
		return rate{}, errors.Join(err, fmt.Errorf("%d rows are stored, not %d", n, rows))
	}
	return p.rate()
}

// stored asks the server's books, which costs it next to nothing.
func stored(ctx context.Context, db *history.DB) (int64, error) {
	var n uint64
	err := db.Conn().QueryRow(ctx, `SELECT sum(total_rows) FROM system.tables
		WHERE database = currentDatabase() AND name IN ('requests', 'decisions', 'attempts', 'outcomes')`).Scan(&n)
	return int64(n), err
}
