package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/route"
)

// Summary is the demo in figures. Each is read from the topics or from ClickHouse, never counted by the code it judges.
type Summary struct {
	Tasks               int    `json:"tasks"`
	Outcomes            uint64 `json:"outcomes"`
	Lost                int    `json:"lost"`
	ConflictingOutcomes int    `json:"conflictingOutcomes"`
	// RescuedByBatch counts Tasks that interactive's memory limit killed and that then succeeded on batch.
	RescuedByBatch uint64 `json:"rescuedByBatch"`
	// RoutedByHistory counts first decisions that kept away from a pool because of what history says of the fingerprint.
	RoutedByHistory uint64 `json:"routedByHistory"`
	BudgetRejected  uint64 `json:"budgetRejected"`
	// ReroutedForQueue counts Tasks sent elsewhere because a queue was too long for their SLA.
	ReroutedForQueue uint64 `json:"reroutedForQueue"`
	// SurvivedEngineKill counts Tasks that lost an attempt to the engine's death and succeeded all the same.
	SurvivedEngineKill uint64  `json:"survivedEngineKill"`
	SLAHitRate         float64 `json:"slaHitRate"`
	SLASamples         uint64  `json:"slaSamples"`
	P50SubmitToStartMs float64 `json:"p50SubmitToStartMs"`
	P99SubmitToStartMs float64 `json:"p99SubmitToStartMs"`

	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Rejected  uint64 `json:"rejected"`
	Expired   uint64 `json:"expired"`
	Attempts  uint64 `json:"attempts"`
	// Stored counts the Tasks whose Outcome is in ClickHouse; it equals outcomes when the profiler has kept up.
	Stored uint64 `json:"stored"`
}

// Complete reports whether every Task has its one Outcome, in the topic and in ClickHouse.
func (s Summary) Complete() error {
	switch {
	case s.Lost > 0:
		return fmt.Errorf("%d of %d tasks have no outcome", s.Lost, s.Tasks)
	case s.ConflictingOutcomes > 0:
		return fmt.Errorf("%d outcomes stand in the log in two versions", s.ConflictingOutcomes)
	case s.Stored != s.Outcomes:
		return fmt.Errorf("%d outcomes are in the topic, %d in ClickHouse", s.Outcomes, s.Stored)
	}
	return nil
}

// Report is the summary with what a person wants to see besides.
type Report struct {
	Summary Summary
	// Routes and Pools are tables, ready to print.
	Routes []RouteRow
	Pools  []PoolRow
	// Rejections are the distinct rejection texts, with how often each was given.
	Rejections []RejectionRow
	// Told is one decision in words.
	Told string
}

// RouteRow says how many first decisions went to a cluster for a reason.
type RouteRow struct {
	Kind    string `ch:"kind"`
	Cluster string `ch:"cluster"`
	Reason  string `ch:"reason"`
	Tasks   uint64 `ch:"tasks"`
}

// PoolRow says how a pool did.
type PoolRow struct {
	Cluster  string  `ch:"cluster"`
	Tasks    uint64  `ch:"tasks"`
	Hits     uint64  `ch:"hits"`
	HitRate  float64 `ch:"hit_rate"`
	QueueP50 float64 `ch:"queue_p50"`
	QueueP95 float64 `ch:"queue_p95"`
	ExecP50  float64 `ch:"exec_p50"`
	ExecP95  float64 `ch:"exec_p95"`
	Retried  uint64  `ch:"retried"`
}

// RejectionRow is a rejection and how often it was given.
type RejectionRow struct {
	Code  string `ch:"rejection_code"`
	Text  string `ch:"rejection_text"`
	Tasks uint64 `ch:"tasks"`
}

// report waits until ClickHouse has what the topics have, and reads the figures.
func report(ctx context.Context, opts Options, b *board) (Report, error) {
	db, err := history.Open(opts.History)
	if err != nil {
		return Report{}, fmt.Errorf("opening the history: %w", err)
	}
	defer func() { _ = db.Close() }()
	prefix := clickhouse.Named("prefix", opts.Prefix+"-")
	r := Report{Summary: b.summary()}
	for _, w := range b.written() {
		if err := waitStored(ctx, db.Conn(), prefix, w); err != nil {
			return Report{}, err
		}
	}
	for _, q := range figures {
		if err := db.Conn().QueryRow(ctx, q.sql, prefix).Scan(q.into(&r.Summary)...); err != nil {
			return Report{}, fmt.Errorf("reading %s from ClickHouse: %w", q.what, err)
		}
	}
	for _, q := range []struct {
		what, sql string
		into      any
	}{{"routes", routesSQL, &r.Routes}, {"pools", poolsSQL, &r.Pools}, {"rejections", rejectionsSQL, &r.Rejections}} {
		if err := db.Conn().Select(ctx, q.into, q.sql, prefix); err != nil {
			return Report{}, fmt.Errorf("reading the %s from ClickHouse: %w", q.what, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling != nil {
		r.Told = route.Explain(*b.telling)
	}
	return r, nil
}

// summary are the figures that only the topics have.
func (b *board) summary() Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Summary{Tasks: len(b.kind), Outcomes: uint64(len(b.ended)), ConflictingOutcomes: b.conflict}
	s.Lost = s.Tasks - len(b.ended)
	for _, o := range b.ended {
		switch o.Status {
		case event.Succeeded:
			s.Succeeded++
		case event.Failed:
			s.Failed++
		case event.Rejected:
			s.Rejected++
		case event.Expired:
			s.Expired++
		case event.Cancelled: // nobody cancels in the demo; it would show as a difference of the sums
		}
	}
	return s
}

// storeTime bounds the wait for the profiler; what is missing then shows in the summary.
const storeTime = 30 * time.Second

// stored is what a table must hold before figures are read from it.
type stored struct {
	table, id, where string
	want             uint64
}

// written is what the topics hold, and so ClickHouse should.
func (b *board) written() []stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []stored{
		{"outcomes", "task_id", "true", uint64(len(b.ended))},
		{"decisions", "task_id", "kind != 'cancel'", uint64(len(b.decided))},
		{"attempts", "attempt_id", "ended", uint64(len(b.attempts))},
	}
}

func waitStored(ctx context.Context, conn driver.Conn, prefix driver.NamedValue, s stored) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	sql := fmt.Sprintf("SELECT uniqExact(%s) FROM %s WHERE %s AND"+mine, s.id, s.table, s.where)
	for {
		var have uint64
		err := conn.QueryRow(ctx, sql, prefix).Scan(&have)
		if err == nil && have >= s.want {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("asking ClickHouse for the %s: %w", s.table, err)
			}
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}
