package tpch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestViewStatements(t *testing.T) {
	m := Manifest{Tables: []TableManifest{{Name: Nation, Columns: Columns(Nation)}}}
	got, err := ViewStatements("tpch", `/data/o'hara\x`, m)
	require.NoError(t, err)
	require.Equal(t, []string{
		"CREATE DATABASE IF NOT EXISTS tpch",
		`CREATE OR REPLACE VIEW tpch.nation AS SELECT * FROM file('/data/o\'hara\\x/nation/*.parquet', Parquet, ` +
			`'n_nationkey Int32, n_name String, n_regionkey Int32, n_comment String')`,
	}, got)
}

func TestViewStatementsRefuse(t *testing.T) {
	ok := Manifest{Tables: []TableManifest{{Name: Nation, Columns: Columns(Nation)}}}
	for name, c := range map[string]struct {
		database, dir string
		m             Manifest
	}{
		"database that is SQL": {"tpch; DROP", "/d", ok},
		"relative folder":      {"tpch", "d", ok},
		"pattern":              {"tpch", "/d/{a,b}", ok},
		"star":                 {"tpch", "/d*", ok},
		"archive":              {"tpch", "/d.zip::x", ok},
		"unknown type":         {"tpch", "/d", Manifest{Tables: []TableManifest{{Name: Nation, Columns: []Column{{"a", "blob"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ViewStatements(c.database, c.dir, c.m)
			require.Error(t, err)
		})
	}
}

func TestEveryColumnHasAClickHouseType(t *testing.T) {
	for _, table := range Tables() {
		require.NotEmpty(t, Columns(table))
		for _, c := range Columns(table) {
			require.Contains(t, clickHouseTypes, c.Type, "%s.%s", table, c.Name)
		}
	}
	require.Nil(t, Columns("nope"))
}
