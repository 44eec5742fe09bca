package migrate

import (
	"fmt"

	"github.com/pressly/goose/v3/database/dialect"
)

// versions is goose's version table as ClickHouse keeps it best: a row is never changed, taking back is a delete that waits.
type versions struct{ cluster string }

var _ dialect.Querier = versions{}

func (v versions) CreateTable(table string) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (version_id Int64, is_applied UInt8, date Date DEFAULT now(), tstamp DateTime('UTC') DEFAULT now()) "+
		"ENGINE = %sMergeTree ORDER BY version_id", table, onCluster(v.cluster), enginePrefix(v.cluster))
}

func (v versions) InsertVersion(table string) string {
	return fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES ($1, $2)", table)
}

func (v versions) DeleteVersion(table string) string {
	return fmt.Sprintf("ALTER TABLE %s DELETE WHERE version_id = $1 SETTINGS mutations_sync = 2", table)
}

func (v versions) GetMigrationByVersion(table string) string {
	return fmt.Sprintf("SELECT tstamp, is_applied FROM %s WHERE version_id = $1 ORDER BY tstamp DESC LIMIT 1", table)
}

func (v versions) ListMigrations(table string) string {
	return fmt.Sprintf("SELECT version_id, is_applied FROM %s ORDER BY version_id DESC", table)
}

func (v versions) GetLatestVersion(table string) string {
	return fmt.Sprintf("SELECT max(version_id) FROM %s", table)
}
