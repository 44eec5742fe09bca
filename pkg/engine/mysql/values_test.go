package mysql

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		typ   string
		local bool
		in    any
		want  any
		name  string
	}{
		{"UNSIGNED BIGINT", false, uint64(1<<64 - 1), uint64(1<<64 - 1), "BIGINT UNSIGNED"},
		{"DECIMAL", false, []byte("-0.10"), json.Number("-0.10"), "DECIMAL"},
		{"FLOAT", false, float32(0.1), 0.1, "FLOAT"},
		{"BIT", false, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(1<<64 - 1), "BIT"},
		{"BIT", false, []byte{5}, uint64(5), "BIT"},
		{"DATE", false, []byte("2026-11-30"), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), "DATE"},
		{"DATE", false, []byte("2026-02-31"), "2026-02-31", "DATE"},
		{"DATETIME", false, []byte("2026-11-30 09:15:00.5"), "2026-11-30T09:15:00.5", "DATETIME"},
		{"DATETIME", false, []byte("0000-00-00 00:00:00"), "0000-00-00 00:00:00", "DATETIME"},
		{"TIMESTAMP", false, []byte("2026-11-30 09:15:00.5"), time.Date(2026, 11, 30, 9, 15, 0, 500_000_000, time.UTC), "TIMESTAMP"},
		{"TIMESTAMP", true, []byte("2026-11-30 09:15:00"), "2026-11-30T09:15:00", "TIMESTAMP"},
		{"LONGBLOB", false, []byte{0, 255}, "0x00ff", "LONGBLOB"},
		{"JSON", false, []byte(`{"a":1}`), `{"a":1}`, "JSON"},
		{"VARCHAR", false, []byte("é"), "é", "VARCHAR"},
		{"VARCHAR", false, nil, nil, "VARCHAR"},
		{"", false, []byte("?"), "?", ""},
	} {
		k := kindOf(c.typ, c.local)
		require.Equal(t, c.want, k.value(c.in), c.typ)
		require.Equal(t, c.name, k.name)
	}
}

func TestFlavourOf(t *testing.T) {
	for _, c := range []struct {
		version, comment string
		want             Flavour
	}{
		{"8.4.3", "MySQL Community Server - GPL", MySQL},
		{"8.0.39", "Source distribution", MySQL},
		{"8.0.35-27", "Percona Server (GPL), Release 27", MySQL},
		{"10.11.19-MariaDB-0+deb12u1", "Debian 12", MariaDB},
		{"8.0.11-TiDB-v8.5.0", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", TiDB},
		{"5.7.99", "Doris version doris-2.1.7-rc03-443e87e203", Doris},
		{"5.7.99", "SelectDB Core version: 4.0.1", Doris},
		{"8.0.33", "StarRocks version 3.3.5", StarRocks},
	} {
		require.Equal(t, c.want, flavourOf(c.version, c.comment), c.version)
	}
	for f, traits := range flavours {
		require.Equal(t, f, traits.flavour)
	}
}

func TestTimeLimitsAreNeverNone(t *testing.T) {
	for f, want := range map[Flavour]string{MySQL: "1", MariaDB: "0.001", TiDB: "1", Doris: "1", StarRocks: "1"} {
		require.Equal(t, want, flavours[f].limitText(time.Microsecond), f) // 0 would be no limit
	}
	require.Equal(t, "2", flavours[Doris].limitText(1001*time.Millisecond))
	require.Equal(t, "1.500", flavours[MariaDB].limitText(1500*time.Millisecond))
}

func TestSettingsAreLiterals(t *testing.T) {
	e := &Engine{}
	set, err := e.variables(flavours[MySQL], engine.Query{Settings: map[string]string{
		"a": "1", "b": "-1.5", "c": "it's", "d": `back\slash`, "e": "1; DROP TABLE t", "f": "", "g": "1e9",
	}})
	require.NoError(t, err)
	require.Equal(t, `SET time_zone = '+00:00', a = 1, b = -1.5, c = 'it''s', d = 'back\\slash', e = '1; DROP TABLE t', f = '', g = '1e9'`, set)
	for _, name := range []string{"", "a b", "a=1,b", "a;", "1a", "@@global.x"} {
		_, err := e.variables(flavours[MySQL], engine.Query{Settings: map[string]string{name: "1"}})
		require.Error(t, err, name)
	}
}

func TestWhatNeedsAFileOfTheClientIsRefused(t *testing.T) {
	e := &Engine{}
	for sql, refused := range map[string]bool{
		"LOAD DATA LOCAL INFILE 'x' INTO TABLE t":                 true,
		"/* note */ load data concurrent local infile 'x'":        true,
		"# note\n-- note\nLOAD XML LOCAL INFILE 'x' INTO TABLE t": true,
		"LOAD DATA INFILE '/data/x' INTO TABLE t":                 false,
		"SELECT 'LOAD DATA LOCAL'":                                false,
	} {
		require.Equal(t, refused, e.refuse(sql) != nil, sql)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, addr := range []string{"", "db", "db:mysql", "db:70000"} {
		_, err := Open(Config{Name: "m", Addr: addr})
		require.ErrorContains(t, err, "host:port", addr)
	}
	_, err := Open(Config{Name: "m", Addr: "db:3306", Flavour: "percona"})
	require.ErrorContains(t, err, "[doris mariadb mysql starrocks tidb]")
}

func TestPlans(t *testing.T) {
	n := func(f float64) *float64 { return &f }
	for _, c := range []struct {
		name    string
		flavour Flavour
		lines   [][]string
		want    engine.Plan
	}{
		{"MySQL", MySQL, [][]string{{`{"query_block": {"select_id": 1, "cost_info": {"query_cost": "2.30"}}}`}}, engine.Plan{Cost: n(2.3)}},
		{"MariaDB 11", MariaDB, [][]string{{`{"query_block": {"select_id": 1, "cost": 0.0124}}`}}, engine.Plan{Cost: n(0.0124)}},
		{"MariaDB 10", MariaDB, [][]string{{`{"query_block": {"select_id": 1, "table": {"rows": 10}}}`}}, engine.Plan{}},
		{"no JSON", MySQL, [][]string{{"-> Rows fetched before execution"}}, engine.Plan{}},
		{"TiDB", TiDB, [][]string{
			{"Limit_8", "10.00", "root", "", "offset:0, count:10"},
			{"└─TableReader_13", "10.00", "root", "", "data:Limit_12"},
			{"  └─Limit_12", "10.00", "cop[tikv]", "", ""},
			{"    └─TableFullScan_11", "5000.00", "cop[tikv]", "table:t", "keep order:false"},
		}, engine.Plan{ResultRows: n(10), ReadRows: n(5000)}},
		{"TiDB without a scan", TiDB, [][]string{{"Projection_3", "1.00", "root", "", "1->Column#1"}}, engine.Plan{ResultRows: n(1)}},
		{"TiDB, N/A", TiDB, [][]string{{"Insert_1", "N/A", "root", "", "N/A"}}, engine.Plan{}},
		{"Doris", Doris, [][]string{{"PLAN FRAGMENT 0"}, {"  OUTPUT EXPRS:"}}, engine.Plan{}},
		{"nothing", StarRocks, nil, engine.Plan{}},
	} {
		p := readPlan(c.flavour, c.lines)
		p.Text = ""
		require.Equal(t, c.want, p, c.name)
	}
}
