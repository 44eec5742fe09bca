package history_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/history"
)

func TestOptions(t *testing.T) {
	o, err := history.Config{}.Options(true)
	require.NoError(t, err)
	require.Equal(t, clickhouse.HTTP, o.Protocol)
	require.Equal(t, []string{"127.0.0.1:8123"}, o.Addr)
	require.Equal(t, clickhouse.Auth{Database: "pointsman", Username: "default"}, o.Auth)
	require.Nil(t, o.TLS)
	require.Nil(t, o.Compression)

	o, err = history.Config{Protocol: history.Native, Compress: true, Password: "secret", Database: "other", TLS: history.TLS{Enabled: true, ServerName: "ch"}, ReadTimeout: time.Second}.Options(false)
	require.NoError(t, err)
	require.Equal(t, clickhouse.Native, o.Protocol)
	require.Equal(t, clickhouse.CompressionLZ4, o.Compression.Method)
	require.Equal(t, "secret", o.Auth.Password)
	require.Empty(t, o.Auth.Database, "the database may not exist yet")
	require.Equal(t, "ch", o.TLS.ServerName)
	require.Equal(t, time.Second, o.ReadTimeout)

	none := filepath.Join(t.TempDir(), "none.pem")
	_, err = history.Open(history.Config{TLS: history.TLS{Enabled: true, CAFile: none}})
	require.ErrorContains(t, err, "none.pem")
	require.NoError(t, os.WriteFile(none, []byte("no certificate"), 0o600))
	_, err = history.Open(history.Config{TLS: history.TLS{Enabled: true, CAFile: none}})
	require.ErrorContains(t, err, "no PEM certificate")
}

func TestConfigFaultsAreNamed(t *testing.T) {
	require.NoError(t, config.Validate(history.DefaultConfig()))
	err := config.Validate(history.Config{Addr: []string{"host"}, Database: "a-b", Protocol: "grpc", DialTimeout: -1, MaxOpenConns: -1, Cluster: "x y"})
	for _, key := range []string{"addr", "database", "protocol", "dialTimeout", "maxOpenConns", "cluster"} {
		require.ErrorContains(t, err, key)
	}
}
