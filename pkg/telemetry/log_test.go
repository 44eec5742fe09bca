package telemetry_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

type password struct{ Authorization string }

func (p password) LogValue() slog.Value {
	return slog.GroupValue(slog.String("authorization", p.Authorization))
}

func TestLoggerHidesSecrets(t *testing.T) {
	const hidden = "hunter2"
	dsn := "clickhouse://default:" + hidden + "@db:9000/x?y=z"
	for _, format := range []telemetry.LogFormat{telemetry.LogText, telemetry.LogJSON} {
		t.Run(string(format), func(t *testing.T) {
			var out strings.Builder
			log := telemetry.NewLogger(&out, telemetry.LogConfig{Level: slog.LevelDebug, Format: format})
			log = log.With("Password", hidden).WithGroup("inner").With("api-key", hidden)
			log.Error("dialling "+dsn, "token", hidden, "dsn", dsn, "holder", password{hidden},
				slog.Group("deep", "secret", hidden), telemetry.Err(fmt.Errorf("dialling %s: %w", dsn, errors.New("refused"))))
			require.NotContains(t, out.String(), hidden)
			require.Contains(t, out.String(), "@db:9000/x?y=z", "the rest of a URL stays, or the line says nothing")
			require.Contains(t, out.String(), "refused")
		})
	}
}

func TestLoggerKeepsWhatOnlyLooksSecret(t *testing.T) {
	var out strings.Builder
	log := telemetry.NewLogger(&out, telemetry.LogConfig{Format: telemetry.LogText})
	log.Info("inserted", "dedup_token", "outcomes/3/10-20", "tokens", 3)
	require.Contains(t, out.String(), "dedup_token=outcomes/3/10-20 tokens=3")
}

func TestSQLIsShownAtDebugOnly(t *testing.T) {
	const query = "SELECT name FROM people WHERE name = 'Marlowe'"
	var out strings.Builder
	log := telemetry.NewLogger(&out, telemetry.LogConfig{Level: slog.LevelDebug, Format: telemetry.LogJSON})
	log.Info("routed", "sql", telemetry.SQL(query))
	log.With("sql", telemetry.SQL(query)).Error("failed")
	require.NotContains(t, out.String(), "Marlowe")
	require.Contains(t, out.String(), fmt.Sprintf("SQL of %d bytes", len(query)))
	log.Debug("routed", "sql", telemetry.SQL(query))
	require.Contains(t, out.String(), "Marlowe")
}

func TestLevel(t *testing.T) {
	var out strings.Builder
	log := telemetry.NewLogger(&out, telemetry.LogConfig{Level: slog.LevelWarn, Format: telemetry.LogText})
	log.Info("quiet")
	log.Warn("loud")
	require.NotContains(t, out.String(), "quiet")
	require.Contains(t, out.String(), "loud")
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"nothing":                            "nothing",
		"http://host/a@b":                    "http://host/a@b",
		"http://u:p@host":                    "http://[redacted]@host",
		"http://token@host":                  "http://[redacted]@host",
		"a://u:p@x and b://v:q@y":            "a://[redacted]@x and b://[redacted]@y",
		`dial "kafka://u:p@host:9092": EOF`:  `dial "kafka://[redacted]@host:9092": EOF`,
		"mail me@example.org, see http://x/": "mail me@example.org, see http://x/",
	} {
		require.Equal(t, want, telemetry.Redact(text))
	}
}
