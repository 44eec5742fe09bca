package engines_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engines"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  engines.Config
		want string // empty for a good one
	}{
		{"clickhouse", engines.Config{Kind: "clickhouse", URL: "http://localhost:8123"}, ""},
		{"clickhouse, a slash", engines.Config{Kind: "clickhouse", URL: "https://localhost:8443/"}, ""},
		{"clickhouse, native", engines.Config{Kind: "clickhouse", URL: "clickhouses://localhost:9440"}, ""},
		{"postgres", engines.Config{Kind: "postgres", URL: "postgres://[::1]:5432"}, ""},
		{"postgres, TLS", engines.Config{Kind: "postgres", URL: "postgresql://db:5432?sslmode=require"}, ""},
		{"mysql", engines.Config{Kind: "mysql", URL: "mysql://db:3306"}, ""},
		{"doris", engines.Config{Kind: "mysql", Flavour: "doris", URL: "mysql://fe:9030?tls=true", Group: "etl"}, ""},
		{"trino", engines.Config{Kind: "trino", URL: "http://coordinator:8080", User: "u"}, ""},
		{"trino, TLS", engines.Config{Kind: "trino", URL: "https://coordinator:8443", User: "u", Password: "p", Database: "lake.web", Group: "global.etl"}, ""},
		{"flight sql", engines.Config{Kind: "flightsql", URL: "grpc://lake:31337", Database: "web"}, ""},
		{"flight sql, TLS", engines.Config{Kind: "flightsql", URL: "grpc+tls://lake:443?database-header=schema", User: "u", Password: "p"}, ""},

		{"flight sql, a password in the clear", engines.Config{Kind: "flightsql", URL: "grpc+tcp://lake:31337", User: "u", Password: "p"}, "over TLS only"},
		{"flight sql, a header that is none", engines.Config{Kind: "flightsql", URL: "grpc://lake:31337?database-header=My+Header"}, "is no name of a header"},
		{"flight sql, a parameter nobody knows", engines.Config{Kind: "flightsql", URL: "grpc://lake:31337?token=x"}, `parameter "token" is not known`},
		{"spark", engines.Config{Kind: "spark", URL: "sc://spark:15002"}, ""},
		{"spark, a token", engines.Config{Kind: "spark", URL: "sc://spark:15002?tls=true", User: "u", Password: "token", Database: "lake.web"}, ""},

		{"spark, a token in the clear", engines.Config{Kind: "spark", URL: "sc://spark:15002", Password: "token"}, "over TLS only"},
		{"spark, its other port", engines.Config{Kind: "spark", URL: "spark://spark:7077"}, "none of sc"},
		{"spark, tls", engines.Config{Kind: "spark", URL: "sc://spark:15002?tls=maybe"}, "none of true"},
		{"trino without a user", engines.Config{Kind: "trino", URL: "http://coordinator:8080"}, "a user is missing"},
		{"trino, a password in the clear", engines.Config{Kind: "trino", URL: "http://coordinator:8080", User: "u", Password: "p"}, "over https only"},
		{"no such kind", engines.Config{Kind: "oracle", URL: "oracle://db:1521"}, "clickhouse, flightsql, mysql, postgres"},
		{"no kind", engines.Config{URL: "http://localhost:8123"}, "is not a kind"},
		{"a flavour of nothing", engines.Config{Kind: "postgres", Flavour: "doris", URL: "postgres://db:5432"}, "a flavour is for the kind mysql"},
		{"no such flavour", engines.Config{Kind: "mysql", Flavour: "percona", URL: "mysql://db:3306"}, "is no flavour"},
		{"another scheme", engines.Config{Kind: "postgres", URL: "mysql://db:3306"}, "none of postgres, postgresql"},
		{"no scheme", engines.Config{Kind: "mysql", URL: "db:3306"}, "must look like mysql://host:port"},
		{"no URL", engines.Config{Kind: "mysql"}, "must look like"},
		{"no port", engines.Config{Kind: "mysql", URL: "mysql://db"}, "must be host:port"},
		{"no host", engines.Config{Kind: "mysql", URL: "mysql://:3306"}, "must be host:port"},
		{"a port too large", engines.Config{Kind: "mysql", URL: "mysql://db:99999"}, "must be host:port"},
		{"two hosts", engines.Config{Kind: "mysql", URL: "mysql://a:3306,b:3306"}, "engine of its own"},
		{"a path", engines.Config{Kind: "postgres", URL: "postgres://db:5432/sales"}, "the database has a key of its own"},
		{"a parameter nobody knows", engines.Config{Kind: "mysql", URL: "mysql://db:3306?ssl=1"}, `parameter "ssl" is not known`},
		{"sslmode", engines.Config{Kind: "postgres", URL: "postgres://db:5432?sslmode=maybe"}, "none of disable"},
		{"tls", engines.Config{Kind: "mysql", URL: "mysql://db:3306?tls=maybe"}, "none of true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := engines.Check(c.cfg)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			e, err := engines.Open(c.cfg)
			require.NoError(t, err, "an engine that nobody has started is no error yet")
			require.NoError(t, e.Close())
		})
	}
}

func TestAPasswordInTheURLIsNotRepeated(t *testing.T) {
	for _, url := range []string{"mysql://root:hunter2@db:3306", "mysql://root:hunter2@db", "postgres://root:hunter2@db:3306/x"} {
		err := engines.Check(engines.Config{Kind: "mysql", URL: url})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestDatabase(t *testing.T) {
	for _, c := range [][4]string{
		{"trino", "lake", "web", "lake.web"},
		{"trino", "", "web", "web"},
		{"trino", "lake", "", "lake."},
		{"trino", "", "", ""},
		{"spark", "lake", "web", "lake.web"},
		{"spark", "", "web", "web"},
		{"mysql", "lake", "web", "web"},
		{"clickhouse", "", "web", "web"},
	} {
		require.Equal(t, c[3], engines.Database(c[0], c[1], c[2]), "%v", c)
	}
}

func TestKeyOfAnError(t *testing.T) {
	for want, c := range map[string]engines.Config{
		"kind": {Kind: "oracle"}, "url": {Kind: "trino", URL: "coordinator"}, "user": {Kind: "trino", URL: "http://c:8080"},
		"password": {Kind: "trino", URL: "http://c:8080", User: "u", Password: "p"}, "flavour": {Kind: "mysql", URL: "mysql://db:3306", Flavour: "percona"},
	} {
		require.Equal(t, want, engines.Key(engines.Check(c)))
	}
}
