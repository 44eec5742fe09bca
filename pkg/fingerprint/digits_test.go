package fingerprint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Digits in front of letters are a value and a keyword, or a name where names may start so.
func TestDigitsBeforeLetters(t *testing.T) {
	const card = "4111222233334444"
	for _, c := range []struct {
		d          lex.Dialect
		sql, canon string
	}{
		{lex.MySQL, "SELECT a FROM t WHERE card=" + card + "and b=1", "select a from t where card = ? and b = ?"},
		{lex.Auto, "SELECT a FROM t WHERE card=" + card + "or b=1", "select a from t where card = ? or b = ?"},
		{lex.Spark, "SELECT a FROM t WHERE card=" + card + "order by a", "select a from t where card = ? order by a"},
		{lex.ClickHouse, "SELECT a FROM t WHERE card=" + card + "AND b=1", "select a from t where card = ? and b = ?"},
		{lex.Trino, "SELECT a FROM t WHERE card=" + card + "or b=1", "select a from t where card = ? or b = ?"},
		{lex.Trino, "SELECT a FROM t WHERE card=1_000or b=1", "select a from t where card = ? or b = ?"},
		{lex.Postgres, "SELECT a FROM t WHERE card=1e5or b=1", "select a from t where card = $1 or b = $2"},
		{lex.MySQL, "SELECT a FROM t WHERE card=1e5or b=1", "select a from t where card = ? or b = ?"},
		{lex.Postgres, "SELECT a FROM t WHERE b = 12345678sekr", "select a from t where b = $1"},
		{lex.Trino, "SELECT a FROM t WHERE b = 12345678sekr AND c = 1", "select a from t where b = ? and c = ?"},
		{lex.Trino, "SELECT 1from t ORDER BY 1desc", "select ? from t order by 1 desc"},
		{lex.MySQL, "SELECT a FROM 59901_login", "select a from 59901_login"},
		{lex.MySQL, "SELECT a FROM 59901and", "select a from 59901and"},
		{lex.MySQL, "SELECT t.1and FROM t", "select t.1and from t"},
		{lex.ClickHouse, "SELECT a FROM 59901_login", "select a from 59901_login"},
	} {
		got := fingerprint.New(c.sql, c.d)
		require.Equal(t, c.canon, got.Canonical, "%s: %s", c.d, c.sql)
		if c.d != lex.Postgres { // its numbered literals are read as parameters
			require.Equal(t, got.Canonical, fingerprint.Canonical(got.Canonical, c.d), "%s: %s", c.d, c.sql)
		}
	}
}
