// Package shape reads off a SQL text what a router can know before anything runs: what kind of statement it is, which
// tables it reads and writes, how it joins, groups and sorts, whether it may be run again, and which of its conditions
// can prune a scan.
//
// A shape is found in two steps. A Template depends only on the fingerprint and may be kept; Bind adds what depends on
// the literals. This package works from tokens and so accepts any text; package tidbast adds a real parser for the texts
// that it reads, and package cache remembers templates.
package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// Statement is the class of a statement. The empty class is a text whose verb is not known.
type Statement string

// The classes of statements.
const (
	Select        Statement = "select"
	Insert        Statement = "insert"
	Update        Statement = "update"
	Delete        Statement = "delete"
	Merge         Statement = "merge"
	Replace       Statement = "replace"
	Create        Statement = "create"
	CreateTableAs Statement = "create_table_as"
	Alter         Statement = "alter"
	Drop          Statement = "drop"
	Truncate      Statement = "truncate"
	Call          Statement = "call"
	Execute       Statement = "execute"
	Set           Statement = "set"
	Show          Statement = "show"
	Explain       Statement = "explain"
	Other         Statement = "other"
)

// Statements lists the classes.
var Statements = []Statement{
	Select, Insert, Update, Delete, Merge, Replace, Create, CreateTableAs, Alter, Drop, Truncate, Call, Execute, Set, Show, Explain, Other,
}

// Effect says what running a statement a second time would do. The empty effect is not known.
type Effect string

// The effects, from harmless to not.
const (
	NoEffect      Effect = "none"       // reads only: may run again and anywhere
	SessionEffect Effect = "session"    // changes the session alone
	Repeatable    Effect = "repeatable" // writes, but a second run leaves the same state
	LockEffect    Effect = "lock"       // takes locks, and so needs the writable node
	Once          Effect = "once"       // a second run may write twice
)

// Source says which reader the shape comes from.
type Source string

// The sources.
const (
	FromAST    Source = "ast"    // a parser read the text as it stands
	FromShim   Source = "shim"   // a parser read the text after its dialect was translated
	FromTokens Source = "tokens" // the token extractor
	FromNone   Source = "none"   // nothing could be read
)

// Joins counts joins by kind. A join without a condition of its own, and so a comma, is a cross join.
type Joins struct {
	Inner int `json:"inner,omitempty"`
	Left  int `json:"left,omitempty"`
	Right int `json:"right,omitempty"`
	Full  int `json:"full,omitempty"`
	Cross int `json:"cross,omitempty"`
	Semi  int `json:"semi,omitempty"`
	Anti  int `json:"anti,omitempty"`
}

// Total is the number of joins.
func (j Joins) Total() int { return j.Inner + j.Left + j.Right + j.Full + j.Cross + j.Semi + j.Anti }

// SetOps counts set operations.
type SetOps struct {
	Union     int `json:"union,omitempty"`
	UnionAll  int `json:"unionAll,omitempty"`
	Intersect int `json:"intersect,omitempty"`
	Except    int `json:"except,omitempty"`
}

// Window is one use of a window function.
type Window struct {
	// Function is the function's name in lower case.
	Function string `json:"function,omitempty"`
	// PartitionBy holds the partition keys; none means that the whole input is one window.
	PartitionBy []string `json:"partitionBy,omitempty"`
	// Ordered says that the window sorts its rows.
	Ordered bool `json:"ordered,omitempty"`
}

// Shape is what is known of a statement before it runs.
type Shape struct {
	Statement Statement `json:"statement,omitempty"`
	// Command is the statement's opening words, for statements that the class does not set apart: "show branches".
	Command  string `json:"command,omitempty"`
	ReadOnly bool   `json:"readOnly"`
	Effect   Effect `json:"effect,omitempty"`
	// Tables are the physical tables read or written, WriteTables those written, in order of appearance.
	Tables      []Table `json:"tables,omitempty"`
	WriteTables []Table `json:"writeTables,omitempty"`
	// JoinTables counts the references to physical tables behind FROM, JOIN and USING.
	JoinTables int      `json:"joinTables"`
	Joins      Joins    `json:"joins,omitzero"`
	Windows    []Window `json:"windows,omitempty"`
	GroupBy    bool     `json:"groupBy"`
	// GroupKeys is the number of grouping expressions of the outermost query that groups.
	GroupKeys          int    `json:"groupKeys,omitempty"`
	DistinctAggregates int    `json:"distinctAggregates,omitempty"`
	Distinct           bool   `json:"distinct,omitempty"`
	OrderBy            bool   `json:"orderBy,omitempty"`
	SetOps             SetOps `json:"setOps,omitzero"`
	CTEs               int    `json:"ctes,omitempty"`
	Recursive          bool   `json:"recursive,omitempty"`
	// Subqueries counts queries inside the statement's own, SubqueryDepth how deep they nest.
	Subqueries    int `json:"subqueries,omitempty"`
	SubqueryDepth int `json:"subqueryDepth,omitempty"`
	// UDFs are the functions called that no engine ships.
	UDFs []string `json:"udfs,omitempty"`
	// Regex and JSON count uses of functions and operators that cost CPU for every row.
	Regex int `json:"regex,omitempty"`
	JSON  int `json:"json,omitempty"`
	// Star says that the outermost query returns * and so an unknown number of columns; OutputColumns is nil then.
	Star          bool `json:"star,omitempty"`
	OutputColumns *int `json:"outputColumns,omitempty"`
	// Limit and Offset bound the result of the whole statement. Nil means that there is none, or that its value is not in
	// the text.
	Limit    *int64 `json:"limit,omitempty"`
	Offset   *int64 `json:"offset,omitempty"`
	HasLimit bool   `json:"hasLimit,omitempty"`
	// Prunable holds for every row that the statement needs of a table, wherever the table is read.
	Prunable []Predicate `json:"prunable,omitempty"`
	// Bucket sets apart parameters of one fingerprint whose cost differs; see BucketOf.
	Bucket string `json:"bucket,omitempty"`
	Source Source `json:"source,omitempty"`
	// Partial says that the text was cut, unbalanced or too large, so that there may be more in it.
	Partial bool `json:"partial,omitempty"`
}

// HasWindow says that a window function is used.
func (s *Shape) HasWindow() bool { return len(s.Windows) > 0 }

// HasUDF says that a function is called that no engine ships.
func (s *Shape) HasUDF() bool { return len(s.UDFs) > 0 }

// Expensive says that the statement has operations that the cost of a scan does not show: windows, UDFs, regular
// expressions or JSON.
func (s *Shape) Expensive() bool {
	return s.HasWindow() || s.HasUDF() || s.Regex > 0 || s.JSON > 0
}

// Of reads the shape of a text from its tokens.
func Of(sql string, d lex.Dialect) Shape {
	var spans lex.Spans
	t, r := Extract(sql, d, &spans)
	var b Binding
	t.Bind(&b, sql, d, r, &spans)
	return t.Shape(&b, sql)
}
