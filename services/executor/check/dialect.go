package check

import "strings"

// greedyLimit is what the greedy statements need more than.
const greedyLimit = 30_000_000

// dialect is what the checks ask, in the words of one kind of engine. They read nothing but what they make themselves.
type dialect struct {
	// types gives one row, which is typed as a line of JSON.
	types, typed string
	// slow runs for many seconds.
	slow string
	// greedy takes more memory than greedyLimit, where the engine takes a limit for one query.
	greedy string
}

var mysql = dialect{
	types: "SELECT CAST(9007199254740993 AS SIGNED), CAST(1.25 AS DECIMAL(9,2)), NULL",
	typed: `["9007199254740993","1.25",null]`,
	slow:  "SELECT SLEEP(60)",
}

// anySQL is for a protocol behind which any engine may be: statements that nearly all of them take.
var anySQL = dialect{
	types: "SELECT CAST(9007199254740993 AS BIGINT), CAST(1.25 AS DECIMAL(9, 2)), NULL, CAST('2026-11-30' AS DATE)",
	typed: `["9007199254740993","1.25",null,"2026-11-30"]`,
	slow:  sumOfProducts(12),
}

// sumOfProducts adds up all numbers of n decimal digits, in tables that the statement makes itself.
func sumOfProducts(n int) string {
	digits := make([]string, 10)
	for i := range digits {
		digits[i] = "SELECT " + string(rune('0'+i)) + " AS x"
	}
	tables, sums := make([]string, n), make([]string, n)
	for i := range n {
		name := "t" + string(rune('a'+i))
		tables[i], sums[i] = "d "+name, name+".x"
	}
	return "WITH d AS (" + strings.Join(digits, " UNION ALL ") + ") SELECT sum(" + strings.Join(sums, " + ") + ") FROM " + strings.Join(tables, " CROSS JOIN ")
}

var dialects = map[string]dialect{
	"clickhouse": {
		types:  "SELECT toInt64(9007199254740993), toDecimal64('1.25', 2), NULL::Nullable(String), toDateTime64('2026-11-30 09:15:00.123', 3, 'UTC')",
		typed:  `["9007199254740993","1.25",null,"2026-11-30T09:15:00.123Z"]`,
		slow:   "SELECT sum(sleepEachRow(0.1)) FROM numbers(600) SETTINGS max_block_size = 1",
		greedy: "SELECT count() FROM (SELECT number FROM numbers_mt(3000000) GROUP BY number)",
	},
	"postgres": {
		types: "SELECT 9007199254740993::bigint, 1.25::numeric(9,2), NULL::text, '2026-11-30 09:15:00.123+00'::timestamptz",
		typed: `["9007199254740993","1.25",null,"2026-11-30T09:15:00.123Z"]`,
		slow:  "SELECT pg_sleep(60)",
	},
	"mysql": mysql, "mariadb": mysql, "tidb": mysql, "doris": mysql, "starrocks": mysql,
	"spark": {
		types: "SELECT 9007199254740993L, CAST(1.25 AS decimal(9,2)), CAST(NULL AS string), TIMESTAMP'2026-11-30 09:15:00.123Z'",
		typed: `["9007199254740993","1.25",null,"2026-11-30T09:15:00.123Z"]`,
		slow:  "SELECT count(*) FROM range(0, 100000000000000, 1, 4) WHERE id % 7919 = 1",
	},
	"flightsql": anySQL,
	"trino": {
		types: "SELECT BIGINT '9007199254740993', DECIMAL '1.25', CAST(NULL AS varchar), TIMESTAMP '2026-11-30 09:15:00.123 UTC'",
		typed: `["9007199254740993","1.25",null,"2026-11-30T09:15:00.123Z"]`,
		slow:  "SELECT count(*) FROM UNNEST(sequence(1, 10000)) AS a(x) CROSS JOIN UNNEST(sequence(1, 10000)) AS b(y) CROSS JOIN UNNEST(sequence(1, 10000)) AS c(z) WHERE (x * y * z) % 7919 = 1",
	},
}
