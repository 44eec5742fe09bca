package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
)

const serverConfig = `<yandex>
<logger><level>warning</level><log>%[1]s/server.log</log><errorlog>%[1]s/server.err.log</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>%[2]s</http_port><tcp_port>%[3]s</tcp_port><interserver_http_port>%[4]s</interserver_http_port>
<path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><format_schema_path>%[1]s/schemas/</format_schema_path>
<mark_cache_size>5368709120</mark_cache_size><users_config>%[1]s/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
</yandex>`

const usersConfig = `<yandex><profiles><default><load_balancing>random</load_balancing></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas></yandex>`

// startServer starts a clickhouse-server of the machine and gives the address of its native port.
func startServer(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("clickhouse-server")
	if err != nil {
		t.Skip("no clickhouse-server on this machine (Debian: apt-get install clickhouse-server)")
	}
	dir := t.TempDir()
	port := func() string {
		_, p, err := net.SplitHostPort(ports.Closed(t))
		require.NoError(t, err)
		return p
	}
	tcp := port()
	config := filepath.Join(dir, "config.xml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, serverConfig, dir, port(), tcp, port()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "users.xml"), []byte(usersConfig), 0o600))
	cmd := exec.Command(binary, "--config-file="+config)
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr := net.JoinHostPort("127.0.0.1", tcp)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 50*time.Millisecond, "the server does not listen")
	return addr
}

// TestServer runs the suite over the native protocol. Debian's server is from 2018, so its types and its codes are a part of
// today's.
func TestServer(t *testing.T) {
	addr := startServer(t)
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "clickhouse-native", Engine: "ClickHouse, native protocol", Proof: "real server, version 18.16 (Debian)",
		Exceptions: map[string]string{"Explain": "this server has no `EXPLAIN`; from version 21 on it is asked"},
		Kind:       clickhouse.Kind,
		Open: func(t *testing.T) engine.Engine {
			return open(t, clickhouse.Config{Name: "s", Addrs: []string{addr}, Protocol: clickhouse.Native, User: "default"})
		},
		Dead: func(t *testing.T) engine.Engine {
			return open(t, clickhouse.Config{Name: "dead", Addrs: []string{ports.Closed(t)}, Protocol: clickhouse.Native, DialTimeout: time.Second})
		},
		One: "SELECT toUInt8(1) AS n", Empty: "SELECT number FROM system.numbers WHERE number > 100 LIMIT 0",
		Addr: addr,
		OpenAt: func(t *testing.T, addr string) engine.Engine {
			return open(t, clickhouse.Config{Name: "s", Addrs: []string{addr}, Protocol: clickhouse.Native, User: "default", DialTimeout: time.Second})
		},
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n UInt8) ENGINE = Memory",
		Writes:   "INSERT INTO nothing SELECT 1", Written: "SELECT count() FROM nothing",
		Types: "SELECT toUInt64(18446744073709551615) AS a, toDecimal64('-1.25', 4) AS b, CAST(NULL AS Nullable(String)) AS c, [toInt64(9007199254740993)] AS d, toDate('2026-11-30') AS e",
		Columns: []event.Column{
			{Name: "a", Type: "UInt64"}, {Name: "b", Type: "Decimal(18, 4)"}, {Name: "c", Type: "Nullable(String)"}, {Name: "d", Type: "Array(Int64)"}, {Name: "e", Type: "Date"},
		},
		Values: []any{uint64(18446744073709551615), json.Number("-1.2500"), nil, []any{int64(9007199254740993)}, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)},
		Wrong:  "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT groupArray(toString(number)) FROM (SELECT number FROM system.numbers LIMIT 20000000)", MemoryLimit: 50_000_000,
		// This server can't limit the size of a block here, and it looks at its kill flag between blocks only.
		Slow:  "SELECT count() FROM (SELECT number FROM system.numbers LIMIT 400000000000)",
		Large: "SELECT number, number + 1, number + 2, number + 3 FROM (SELECT number FROM system.numbers LIMIT 3000000)", LargeRows: 3_000_000,
		Breaks:      "SELECT number, throwIf(number = 900000) FROM (SELECT number FROM system.numbers LIMIT 1000000)",
		BreaksClass: failure.Semantic,
		Echo:        "SELECT toUInt32(%d)",
		Setting:     "SELECT value FROM system.settings WHERE name = 'max_block_size'", SettingName: "max_block_size", SettingValue: "4242",
	})
}

func TestSeveralServersAreSeveralEngines(t *testing.T) {
	_, err := clickhouse.Open(clickhouse.Config{Name: "c", Addrs: []string{"one:8123", "two:8123"}})
	require.ErrorIs(t, err, clickhouse.ErrSeveralAddrs)
	require.ErrorContains(t, err, "engine of its own")
	_, err = clickhouse.Open(clickhouse.Config{Name: "c"})
	require.ErrorContains(t, err, "no address")
}
