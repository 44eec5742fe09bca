package history

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DB is an open history: what Writer and Reader work on.
type DB struct {
	conn driver.Conn
	cfg  Config
}

// Open prepares a connection pool. It connects with the first statement: a history that is down is no reason not to start.
func Open(cfg Config) (*DB, error) {
	o, err := cfg.Options(true)
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	conn, err := clickhouse.Open(o)
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	return &DB{conn: conn, cfg: cfg.WithDefaults()}, nil
}

// Ping asks the history whether it is there, with its database.
func (d *DB) Ping(ctx context.Context) error {
	var one uint8
	if err := d.conn.QueryRow(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("asking the history: %w", err)
	}
	return nil
}

// Conn is the driver's connection, for what this package has no method for.
func (d *DB) Conn() driver.Conn { return d.conn }

// Close gives the connections back.
func (d *DB) Close() error { return d.conn.Close() }
