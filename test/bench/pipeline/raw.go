package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/services/profiler"
)

// content is a table's rows as the driver takes them.
type content struct {
	table   string
	columns []string
	rows    [][]any
}

// contents are the rows that the profiler has stored.
func contents(ctx context.Context, from history.Config) ([]content, error) {
	source, err := history.Open(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	var all []content
	for table := range tables {
		c, err := contentOf(ctx, source, table)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", table, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// rawOnce inserts the rows into the same tables of another database, by nothing but the driver: batches of the profiler's own size,
// rows that lie ready in memory, as many tables at once as there are inserters.
func rawOnce(ctx context.Context, g *ground, round, inserters int, all []content, rows int64) (perSecond float64, err error) {
	cfg, err := g.history(ctx, fmt.Sprintf("bench_raw%d_%d", round, inserters))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.dropHistory(context.WithoutCancel(ctx), cfg)) }()
	db, err := history.Open(cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	if err := db.Ping(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	group, inserting := errgroup.WithContext(ctx)
	group.SetLimit(inserters)
	for _, c := range all {
		group.Go(func() error { return c.insert(inserting, db, profiler.Default().Sink.BatchRows) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if n, err := stored(ctx, db); err != nil || n != rows {
		return 0, errors.Join(err, fmt.Errorf("%d rows are stored, not %d", n, rows))
	}
	return float64(rows) / took.Seconds(), nil
}

func contentOf(ctx context.Context, db *history.DB, table string) (content, error) {
	c := content{table: table}
	err := db.Conn().QueryRow(ctx, `SELECT groupArray(name) FROM (SELECT name FROM system.columns
		WHERE database = currentDatabase() AND table = '`+table+`' AND default_kind = '' ORDER BY position)`).Scan(&c.columns)
	if err != nil {
		return c, err
	}
	rows, err := db.Conn().Query(ctx, "SELECT "+c.names()+" FROM "+table)
	if err != nil {
		return c, err
	}
	defer func() { _ = rows.Close() }()
	types := rows.ColumnTypes()
	for rows.Next() {
		row := make([]any, len(types))
		for i, t := range types {
			row[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(row...); err != nil {
			return c, err
		}
		for i := range row {
			row[i] = reflect.ValueOf(row[i]).Elem().Interface()
		}
		c.rows = append(c.rows, row)
	}
	return c, rows.Err()
}

func (c content) names() string { return "`" + strings.Join(c.columns, "`, `") + "`" }

func (c content) insert(ctx context.Context, db *history.DB, size int) error {
	for from := 0; from < len(c.rows); from += size {
		if err := c.send(ctx, db, c.rows[from:min(from+size, len(c.rows))]); err != nil {
			return fmt.Errorf("inserting into %s: %w", c.table, err)
		}
	}
	return nil
}

func (c content) send(ctx context.Context, db *history.DB, rows [][]any) error {
	batch, err := db.Conn().PrepareBatch(ctx, "INSERT INTO "+c.table+" ("+c.names()+")")
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	for _, row := range rows {
		if err := batch.Append(row...); err != nil {
			return err
		}
	}
	return batch.Send()
}
