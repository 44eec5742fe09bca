package lex

import (
	"fmt"
	"strings"
)

// Dialect names the rules by which a text is cut into tokens. The zero value is Auto: the dialect is unknown.
type Dialect uint16

// The dialects whose lexical rules are known.
const (
	Auto Dialect = iota
	MySQL
	Doris
	StarRocks
	TiDB
	Trino
	Presto
	Spark
	Hive
	Postgres
	ClickHouse
	Dremio
	ANSI
	DuckDB
	dialectCount
)

// rule is one lexical property of a dialect.
type rule uint32

const (
	ruleBackslash    rule = 1 << iota // a backslash escapes inside quotes
	ruleDoubleString                  // "x" is a string, not a name
	ruleHash                          // # opens a comment
	ruleVersioned                     // /*!50000 x */ is code
	ruleTiDBFeature                   // /*T![feature] x */ is code
	ruleDashBlank                     // -- opens a comment only before a blank
	ruleNested                        // block comments nest
	ruleDollar                        // $tag$ x $tag$ is a string
	ruleCaseBare                      // bare names keep their case
	ruleCaseQuoted                    // quoted names keep their case
	ruleQuestionOp                    // ? behind an operand is an operator
	ruleDigitName                     // a name may start with a digit
	ruleIntroducer                    // _utf8'x' is one string
	ruleBackquote                     // names print in back quotes
	ruleNumbered                      // literals print as $1, $2
	ruleRawSet                        // SET k=v takes raw text as its value
	ruleInlineData                    // INSERT .. FORMAT x takes raw data behind it
	ruleBraceParam                    // {name:Type} is a parameter
	ruleBraceVar                      // ${name} is a variable
	ruleRawString                     // r'x' knows no escape
	ruleGuess                         // unknown dialect: quotes and escapes are guessed
	rulePipesOr                       // || is OR
	ruleNamedDollar                   // $name is a parameter
	ruleLetterName                    // no name starts with a digit
	ruleQQuote                        // q'[x]' is a string
	ruleRawFile                       // ADD JAR takes raw text as its value
)

const mysqlRules = ruleBackslash | ruleDoubleString | ruleHash | ruleVersioned | ruleDashBlank | ruleDigitName |
	ruleIntroducer | ruleBackquote | rulePipesOr

const sparkRules = ruleBackslash | ruleDoubleString | ruleDigitName | ruleBackquote | ruleRawSet | ruleBraceVar | ruleRawString | ruleRawFile

type dialectInfo struct {
	name   string
	family string
	rules  rule
}

var dialects = [dialectCount]dialectInfo{
	Auto: {"auto", "auto", ruleBackslash | ruleHash | ruleVersioned | ruleNested | ruleDollar | ruleDigitName | ruleIntroducer |
		ruleBackquote | ruleInlineData | ruleBraceParam | ruleBraceVar | ruleGuess | ruleQQuote | ruleRawFile},
	MySQL:      {"mysql", "mysql", mysqlRules},
	Doris:      {"doris", "mysql", mysqlRules},
	StarRocks:  {"starrocks", "mysql", mysqlRules},
	TiDB:       {"tidb", "mysql", mysqlRules | ruleTiDBFeature},
	Trino:      {"trino", "trino", ruleDollar | ruleLetterName},
	Presto:     {"presto", "trino", ruleLetterName},
	Spark:      {"spark", "spark", sparkRules | ruleNested},
	Hive:       {"hive", "spark", sparkRules},
	Postgres:   {"postgres", "postgres", ruleNested | ruleDollar | ruleCaseQuoted | ruleQuestionOp | ruleNumbered | ruleLetterName},
	ClickHouse: {"clickhouse", "clickhouse", ruleBackslash | ruleHash | ruleNested | ruleDollar | ruleCaseBare | ruleCaseQuoted | ruleInlineData | ruleBraceParam},
	Dremio:     {"dremio", "ansi", ruleLetterName | ruleQQuote},
	ANSI:       {"ansi", "ansi", ruleLetterName | ruleQQuote},
	DuckDB:     {"duckdb", "duckdb", ruleNested | ruleDollar | ruleNamedDollar | ruleLetterName},
}

// dialectAliases are the spellings that producers use for a dialect beside its own name.
var dialectAliases = map[string]Dialect{
	"": Auto, "unknown": Auto, "mariadb": MySQL, "athena": Trino, "starburst": Trino, "prestodb": Presto, "prestosql": Trino,
	"sparksql": Spark, "databricks": Spark, "hiveql": Hive, "postgresql": Postgres, "pg": Postgres, "redshift": Postgres,
	"greenplum": Postgres, "chdb": ClickHouse, "calcite": ANSI, "sql": ANSI, "selectdb": Doris,
}

// ParseDialect reads a dialect's name, without regard to case. An unknown name is an error and comes with Auto.
func ParseDialect(name string) (Dialect, error) {
	low := strings.ToLower(strings.TrimSpace(name))
	for d, info := range dialects {
		if info.name == low {
			return Dialect(d), nil
		}
	}
	if d, ok := dialectAliases[low]; ok {
		return d, nil
	}
	return Auto, fmt.Errorf("unknown SQL dialect %q: want one of %s", name, strings.Join(Dialects(), ", "))
}

// Dialects lists the names that ParseDialect prints back.
func Dialects() []string {
	names := make([]string, 0, dialectCount)
	for _, info := range dialects {
		names = append(names, info.name)
	}
	return names
}

// info is total: a Dialect that was never defined behaves as Auto.
func (d Dialect) info() *dialectInfo { return &dialects[d.known()] }

func (d Dialect) known() Dialect {
	if d >= dialectCount {
		return Auto
	}
	return d
}

// String is the dialect's name.
func (d Dialect) String() string { return d.info().name }

// Family groups dialects with the same lexical rules. Equal canonical text in one family has one fingerprint.
func (d Dialect) Family() string { return d.info().family }

// MySQLLike says that the dialect follows MySQL's syntax.
func (d Dialect) MySQLLike() bool { return d.info().family == "mysql" }

// CaseSensitiveNames says that bare names of the dialect differ by case.
func (d Dialect) CaseSensitiveNames() bool { return d.info().rules&ruleCaseBare != 0 }

// PipesOr says that || means OR.
func (d Dialect) PipesOr() bool { return d.info().rules&rulePipesOr != 0 }

// Backslash says that a backslash escapes inside the dialect's ordinary strings.
func (d Dialect) Backslash() bool { return d.info().rules&ruleBackslash != 0 }

// FillsDefaults says that an outer join fills missing rows with default values and not with NULL.
func (d Dialect) FillsDefaults() bool { return d == ClickHouse }

// AliasesInWhere says that WHERE may use the names that SELECT gives to its columns.
func (d Dialect) AliasesInWhere() bool { return d == ClickHouse || d == Auto }

// LikeEscape is the character that escapes a wildcard in LIKE without an ESCAPE clause, or zero.
func (d Dialect) LikeEscape() byte {
	switch d {
	case Trino, Presto, Dremio, ANSI, DuckDB:
		return 0
	}
	return '\\'
}

// HasDual says that FROM dual names no table.
func (d Dialect) HasDual() bool {
	return d.MySQLLike() || d == Auto || d == Dremio || d == ANSI
}
