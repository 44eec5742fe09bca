package statement

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInsertData(t *testing.T) {
	const path = "/proc/self/fd/9"
	from := " FROM INFILE '" + path + "' "
	for _, c := range []struct{ text, sql, data string }{
		{"INSERT INTO t VALUES (1)", "INSERT INTO t " + from + " FORMAT Values", " (1)"},
		{"insert into db.t (a, b) format CSV\n1,2\n", "insert into db.t (a, b) " + from + " FORMAT CSV", "1,2\n"},
		{"INSERT INTO t FORMAT TSV \r\n1", "INSERT INTO t " + from + " FORMAT TSV", "1"},
		{"INSERT INTO t FORMAT TSV\n\n1", "INSERT INTO t " + from + " FORMAT TSV", "\n1"},
		{"INSERT INTO t FORMAT `TSV` 1", "INSERT INTO t " + from + " FORMAT `TSV`", "1"},
		{"INSERT INTO t SETTINGS a = 1, b = 'FORMAT x' FORMAT CSV\n1", "INSERT INTO t " + from + "SETTINGS a = 1, b = 'FORMAT x'  FORMAT CSV", "1"},
		{"INSERT INTO t SETTINGS a = 1 VALUES (1)", "INSERT INTO t " + from + "SETTINGS a = 1  FORMAT Values", " (1)"},
		{"INSERT INTO TABLE FUNCTION file('x', 'CSV', 'a Int') VALUES (1)", "INSERT INTO TABLE FUNCTION file('x', 'CSV', 'a Int') " + from + " FORMAT Values", " (1)"},
		{"INSERT INTO values VALUES (1)", "INSERT INTO values " + from + " FORMAT Values", " (1)"},
		{"INSERT INTO format FORMAT CSV 1", "INSERT INTO format " + from + " FORMAT CSV", "1"},
		{"INSERT INTO `values` . \"format\" (`VALUES`) VALUES (1)", "INSERT INTO `values` . \"format\" (`VALUES`) " + from + " FORMAT Values", " (1)"},
		{"INSERT INTO {t:Identifier} VALUES (1)", "INSERT INTO {t:Identifier} " + from + " FORMAT Values", " (1)"},
		{"/* VALUES */ INSERT -- FORMAT\nINTO t VALUES (1)", "/* VALUES */ INSERT -- FORMAT\nINTO t " + from + " FORMAT Values", " (1)"},
		{
			"INSERT INTO t SELECT a, f(b) FROM input('a Int, b String') WHERE a > (1) FORMAT CSV 1,x",
			"INSERT INTO t SELECT a, f(b) FROM file('" + path + "', 'CSV', 'a Int, b String') WHERE a > (1) ", "1,x",
		},
		{
			"INSERT INTO t SELECT * FROM input(concat('a', ' Int')) FORMAT CSV 1",
			"INSERT INTO t SELECT * FROM file('" + path + "', 'CSV', concat('a', ' Int')) ", "1",
		},
	} {
		s, err := Parse(c.text, true)
		require.NoError(t, err, c.text)
		require.NotNil(t, s.Insert(), c.text)
		require.Equal(t, c.sql, s.Insert().SQL(path), c.text)
		require.Equal(t, c.data, c.text[s.Insert().Data:], c.text)
	}
	for _, text := range []string{
		"INSERT INTO t SELECT 1", "INSERT INTO t SELECT format FROM x FORMAT JSON", "INSERT INTO t WITH 1 AS x SELECT x", "INSERT INTO t (SELECT 1)",
		"SELECT 'INSERT INTO t VALUES (1)'", "INSERT INTO t", "EXPLAIN INSERT INTO t SELECT 1", "INSERT INTO t SELECT * FROM values('a Int', 1)",
	} {
		s, err := Parse(text, true)
		require.NoError(t, err, text)
		require.Nil(t, s.Insert(), text)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                                   ErrEmpty,
		" ; ;; -- x":                         ErrEmpty,
		"SELECT 1; SELECT 2":                 ErrMulti,
		"SELECT ';' ; x":                     ErrMulti,
		"SELECT 1 INTO OUTFILE 'x'":          ErrIntoOutfile,
		"INSERT INTO t FROM INFILE 'x'":      ErrFromInfile,
		"INSERT INTO t (a) from /**/ infile": ErrFromInfile,
	} {
		_, err := Parse(text, true)
		require.ErrorIs(t, err, want, text)
	}
	for _, text := range []string{"SELECT 1;", "SELECT 1 ;; -- the end\n", "SELECT '; x'", "SELECT `; x`", "SELECT \"a\"\"; x\"", "SELECT 'it''s; x'", `SELECT 'it\'s; x'`, "SELECT $$; x$$", "SELECT $a$; x $$ $a$", "SELECT 1 -- ; x", "SELECT 1 # ; x", "SELECT 1 /* ; x */", "SELECT 'into outfile'", "SELECT 1 AS outfile"} {
		s, err := Parse(text, true)
		require.NoError(t, err, text)
		require.Equal(t, strings.TrimRight(text[:min(len(text), len(s.Text()))], ";"), s.Text())
	}
	for _, text := range []string{"SELECT 'open", "SELECT `open", "SELECT /* open"} {
		_, err := Parse(text, true)
		require.NoError(t, err, "the engine is to complain about %s", text)
		_, err = Parse(text, false)
		require.ErrorIs(t, err, ErrUnterminated, "more may follow %s", text)
	}
}

func TestFormatClause(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1":             "",
		"SELECT 1 FORMAT JSON": "JSON",
		"SELECT 1 format JSON SETTINGS max_threads = 1":   "JSON",
		"SELECT 1 SETTINGS max_threads = 1 FORMAT JSON;":  "JSON",
		"SELECT * FROM t FORMAT CSV -- FORMAT TSV":        "CSV",
		"SELECT a FROM t ORDER BY format DESC":            "",
		"SELECT format AS x FROM t":                       "",
		"SELECT a AS format FROM t":                       "",
		"SELECT 1 AS format SETTINGS max_threads = 1":     "",
		"SELECT (SELECT 1 FORMAT JSON)":                   "",
		"SELECT 'FORMAT JSON'":                            "",
		"SELECT count(*) FORMAT TSV":                      "TSV",
		"SELECT [1] FORMAT TSV":                           "TSV",
		"SELECT * FORMAT TSV":                             "TSV",
		"SHOW TABLES FORMAT JSON":                         "JSON",
		"SELECT format, x":                                "",
		"SELECT a FROM t WHERE x = format ORDER BY a ASC": "",
	} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		require.Equal(t, want, s.Format(""), text)
	}
	s, err := Parse("SELECT 1 AS a FORMAT JSON SETTINGS max_threads = 1;", true)
	require.NoError(t, err)
	require.Equal(t, "SELECT 1 AS a \nINTO OUTFILE '/p' TRUNCATE FORMAT JSON SETTINGS max_threads = 1", s.IntoFile("/p", "CSV"))
	s, err = Parse("SELECT 1 -- FORMAT JSON", true)
	require.NoError(t, err)
	require.Equal(t, "SELECT 1 -- FORMAT JSON\nINTO OUTFILE '/p' TRUNCATE\nFORMAT CSV", s.IntoFile("/p", "CSV"))
}

func TestKill(t *testing.T) {
	for text, want := range map[string]Kill{
		"KILL QUERY WHERE query_id = 'a'":                    {Condition: "ID = 'a'"},
		"kill query where query_id='a' sync":                 {Condition: "ID='a'", Sync: true},
		"KILL QUERY WHERE query_id = 'a' ASYNC":              {Condition: "ID = 'a'"},
		"KILL QUERY WHERE query_id = 'a' TEST":               {Condition: "ID = 'a'", Test: true},
		"KILL QUERY WHERE query_id = 'a' SYNC FORMAT JSON":   {Condition: "ID = 'a'", Sync: true},
		"KILL QUERY WHERE `query_id` IN ('a', 'query_id');":  {Condition: "ID IN ('a', 'query_id')"},
		"KILL QUERY WHERE initial_query_id = 'sync'":         {Condition: "initial_query_id = 'sync'"},
		"KILL QUERY WHERE elapsed > 1 AND query LIKE '%x%'":  {Condition: "elapsed > 1 AND query LIKE '%x%'"},
		"KILL QUERY WHERE (query_id = 'a' OR query_id='b') ": {Condition: "(ID = 'a' OR ID='b')"},
	} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		got, ok := s.Kill("ID")
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"KILL MUTATION WHERE database = 'x'", "KILL QUERY", "KILL QUERY WHERE", "KILL QUERY WHERE SYNC", "SELECT 1"} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		_, ok := s.Kill("ID")
		require.False(t, ok, text)
	}
	s, err := Parse(`KILL QUERY WHERE query_id IN ('a', 'it\'s', 'it''s', $$not$$, "name")`, true)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "it's", "it's"}, s.Literals())
}

func TestProcesses(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM system.processes":                    "SELECT * FROM v",
		"SELECT system.processes.a FROM `system`.processes": "SELECT v.a FROM v",
		"SHOW PROCESSLIST":                                  "SELECT * FROM v ORDER BY elapsed DESC",
		"SHOW PROCESSLIST FORMAT JSON":                      "SELECT * FROM v ORDER BY elapsed DESC FORMAT JSON",
	} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		require.True(t, s.ReadsProcesses(), text)
		got, err := s.WithProcesses("v")
		require.NoError(t, err)
		require.Equal(t, want, got.Text())
	}
	for _, text := range []string{"SELECT 'system.processes'", "SELECT * FROM system.processes_of_clients", "SELECT * FROM x.processes", "SHOW TABLES"} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		require.False(t, s.ReadsProcesses(), text)
	}
}

func TestReadsNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": true, "SELECT displayName(), version()": true, "select 'from x'": true,
		"SELECT 1 FROM t": false, "SELECT (SELECT max(a) FROM t)": false, "INSERT INTO t SELECT 1": false, "WITH 1 AS x SELECT x": false, "CREATE TABLE t (a Int)": false,
	} {
		s, err := Parse(text, true)
		require.NoError(t, err)
		require.Equal(t, want, s.ReadsNothing(), text)
	}
}
