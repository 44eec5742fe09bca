package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/history/row"
)

// Writer stores batches. Its methods may be called from several goroutines.
type Writer struct {
	db *DB

	mu    sync.Mutex
	known map[string]bool // settings that the server has; nil until it was asked
}

// NewWriter returns a writer on an open history.
func NewWriter(db *DB) *Writer { return &Writer{db: db} }

// Rejected is a row that the server refused, with its reason. Its record belongs into the dead letter.
type Rejected struct {
	Base row.Base
	Err  error
}

// pinned are the settings of every insert. Their defaults changed between versions (async_insert went from 0 to 1 in 26.2), and
// each of them decides whether a repeated insert counts once.
var pinned = map[string]int{
	"async_insert":       0,
	"insert_deduplicate": 1,
	"deduplicate_blocks_in_dependent_materialized_views": 1,
}

// Insert stores a batch in one try: all of it is in when it returns nil, but for the rows that it returns as rejected. After an
// error the same batch is to be given again: what is in already is recognised by its token and not stored twice.
func (w *Writer) Insert(ctx context.Context, b Batch) ([]Rejected, error) {
	if b.Rows.Len() == 0 {
		return nil, nil
	}
	groups, token := split(b.Rows, maxPartitions), b.Token()
	var rejected []Rejected
	for i, rows := range groups {
		t := token
		if len(groups) > 1 {
			t = fmt.Sprintf("%s#%d/%d", token, i, len(groups))
		}
		bad, err := w.insert(ctx, rows, t)
		rejected = append(rejected, bad...)
		if err != nil {
			return rejected, fmt.Errorf("inserting %d rows into %s: %w", rows.Len(), rows.Table(), err)
		}
	}
	return rejected, nil
}

// insert halves what the server can't take as a whole, until it is in or the one row at fault stands alone.
func (w *Writer) insert(ctx context.Context, rows row.Set, token string) ([]Rejected, error) {
	err := w.send(ctx, rows, token)
	if err == nil {
		return nil, nil
	}
	kind, _ := Classify(err)
	switch {
	case kind == FaultRows && rows.Len() == 1:
		return []Rejected{{Base: rows.Base(0), Err: err}}, nil
	case kind == FaultRows:
		return w.halves(ctx, rows.Slice(0, rows.Len()/2), rows.Slice(rows.Len()/2, rows.Len()), token)
	case kind == FaultPartitions:
		days := len(split(rows, 1))
		if days < 2 {
			return nil, err
		}
		groups := split(rows, (days+1)/2)
		return w.halves(ctx, groups[0], groups[1], token)
	default:
		return nil, err
	}
}

func (w *Writer) halves(ctx context.Context, a, b row.Set, token string) ([]Rejected, error) {
	bad, err := w.insert(ctx, a, token+".0")
	if err != nil {
		return bad, err
	}
	more, err := w.insert(ctx, b, token+".1")
	return append(bad, more...), err
}

// send is one insert. A driver's batch is used once: after an error it may hold half of the rows, or send them again.
func (w *Writer) send(ctx context.Context, rows row.Set, token string) error {
	ctx, cancel := context.WithTimeout(ctx, w.db.cfg.InsertTimeout)
	defer cancel()
	settings, err := w.settings(ctx)
	if err != nil {
		return err
	}
	settings["insert_deduplication_token"] = token
	columns := rows.Columns()
	names := make([]string, len(columns))
	types := make([]clickhouse.ColumnNameAndType, len(columns))
	for i, c := range columns {
		names[i], types[i] = c.Name, clickhouse.ColumnNameAndType{Name: c.Name, Type: c.Type}
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings), clickhouse.WithColumnNamesAndTypes(types))
	batch, err := w.db.conn.PrepareBatch(ctx, "INSERT INTO "+rows.Table()+" ("+strings.Join(names, ", ")+")")
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }() // after Send there is nothing left to close
	for i, c := range columns {
		if err := rows.AppendColumn(i, batch.Column(i)); err != nil {
			return errors.Join(fmt.Errorf("column %s: %w", c.Name, err), batch.Abort())
		}
	}
	return batch.Send()
}

// settings are the pinned settings that the server has: an unknown one would be an error.
func (w *Writer) settings(ctx context.Context) (clickhouse.Settings, error) {
	known, err := w.knownSettings(ctx)
	if err != nil {
		return nil, err
	}
	out := clickhouse.Settings{}
	for name, v := range pinned {
		if known[name] {
			out[name] = v
		}
	}
	if known["deduplicate_insert"] {
		out["deduplicate_insert"] = "enable"
	}
	return out, nil
}

func (w *Writer) knownSettings(ctx context.Context) (map[string]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known != nil {
		return w.known, nil
	}
	var names []string
	err := w.db.conn.QueryRow(ctx, "SELECT groupArray(name) FROM system.settings WHERE name LIKE '%dedup%' OR name = 'async_insert'").Scan(&names)
	if err != nil {
		return nil, fmt.Errorf("asking for the server's settings: %w", err)
	}
	w.known = map[string]bool{}
	for _, n := range names {
		w.known[n] = true
	}
	return w.known, nil
}

// MarkDirty notes hours whose rollups have to be made anew. It is called after the rows are in and before their offsets are
// committed, so that a crash in between forgets nothing.
func (w *Writer) MarkDirty(ctx context.Context, hours []time.Time) error {
	if len(hours) == 0 {
		return nil
	}
	hours = slices.Clone(hours)
	slices.SortFunc(hours, time.Time.Compare)
	hours = slices.CompactFunc(hours, time.Time.Equal)
	ctx = w.parameters(ctx, clickhouse.Parameters{"hours": hourList(hours)})
	if err := w.db.conn.Exec(ctx, statement("mark_dirty")); err != nil {
		return fmt.Errorf("marking %d hours: %w", len(hours), err)
	}
	return nil
}
