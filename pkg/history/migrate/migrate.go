// Package migrate brings the history's schema to its newest version and back, with goose over clickhouse-go.
//
// It creates the database when it is missing. The SQL is data in migrations/; what is stored and read is pkg/history's.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/pointsman/pointsman/migrations"
	"github.com/pointsman/pointsman/pkg/history"
)

// VersionTable is where goose keeps what was applied.
const VersionTable = "schema_version"

// Migration is one file of the schema and whether it is applied.
type Migration struct {
	Version int64
	File    string
	Applied bool
	// At is when it was applied; zero when it is not.
	At time.Time
}

// Up applies what is missing and returns what it applied.
func Up(ctx context.Context, cfg history.Config) ([]Migration, error) {
	return run(ctx, cfg, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) { return p.Up(ctx) })
}

// Down takes back the newest migrations down to a version; 0 takes all of them back. The data goes with the tables.
func Down(ctx context.Context, cfg history.Config, to int64) ([]Migration, error) {
	return run(ctx, cfg, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) {
		return p.DownTo(ctx, to)
	})
}

// Status lists all migrations in order.
func Status(ctx context.Context, cfg history.Config) ([]Migration, error) {
	p, closeAll, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the schema's version: %w", err)
	}
	out := make([]Migration, len(status))
	for i, s := range status {
		out[i] = Migration{Version: s.Source.Version, File: s.Source.Path, Applied: s.State == goose.StateApplied, At: s.AppliedAt}
	}
	return out, nil
}

// Pending reports whether the schema lags behind this version of the program.
func Pending(ctx context.Context, cfg history.Config) (bool, error) {
	status, err := Status(ctx, cfg)
	if err != nil {
		return false, err
	}
	for _, m := range status {
		if !m.Applied {
			return true, nil
		}
	}
	return false, nil
}

func run(ctx context.Context, cfg history.Config, do func(context.Context, *goose.Provider) ([]*goose.MigrationResult, error)) ([]Migration, error) {
	p, closeAll, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	results, err := do(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("migrating the history: %w", err)
	}
	out := make([]Migration, len(results))
	for i, r := range results {
		out[i] = Migration{Version: r.Source.Version, File: r.Source.Path, Applied: r.Direction == "up"}
	}
	return out, nil
}

func open(ctx context.Context, cfg history.Config) (*goose.Provider, func(), error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("migrating the history: %w", err)
	}
	if err := createDatabase(ctx, cfg); err != nil {
		return nil, nil, err
	}
	options, err := cfg.Options(true)
	if err != nil {
		return nil, nil, fmt.Errorf("migrating the history: %w", err)
	}
	db := clickhouse.OpenDB(options)
	p, err := provider(db, cfg.Cluster)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("migrating the history: %w", err), db.Close())
	}
	return p, func() { _ = db.Close() }, nil
}

func createDatabase(ctx context.Context, cfg history.Config) error {
	options, err := cfg.Options(false)
	if err != nil {
		return fmt.Errorf("migrating the history: %w", err)
	}
	db := clickhouse.OpenDB(options)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+cfg.Database+onCluster(cfg.Cluster)); err != nil {
		return fmt.Errorf("creating the database %s: %w", cfg.Database, err)
	}
	return nil
}

func provider(db *sql.DB, cluster string) (*goose.Provider, error) {
	files, err := fs.Sub(migrations.ClickHouse, "clickhouse")
	if err != nil {
		return nil, err
	}
	store, err := database.NewStoreFromQuerier(VersionTable, versions{cluster})
	if err != nil {
		return nil, err
	}
	macros := strings.NewReplacer("{{ON_CLUSTER}}", onCluster(cluster), "{{ENGINE_PREFIX}}", enginePrefix(cluster))
	return goose.NewProvider(goose.DialectCustom, db, rendered{files, macros}, goose.WithStore(store), goose.WithDisableGlobalRegistry(true))
}

func onCluster(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " ON CLUSTER '" + cluster + "'"
}

// enginePrefix makes the tables replicated; their paths are the server's default_replica_path.
func enginePrefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return "Replicated"
}
