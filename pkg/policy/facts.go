package policy

import (
	"fmt"
	"strings"
)

// Fact is a named fact about a Task and the moment: a number, a truth value, a word or a set of words. The zero Fact is
// missing, which is neither zero nor false.
type Fact struct {
	Known  bool
	Number float64
	Word   string
	Words  []string
}

// NumberFact makes a known number.
func NumberFact(n float64) Fact { return Fact{Known: true, Number: n} }

// BoolFact makes a known truth value.
func BoolFact(b bool) Fact {
	if b {
		return NumberFact(1)
	}
	return NumberFact(0)
}

// WordFact makes a known word; the empty word is missing.
func WordFact(word string) Fact { return Fact{Known: word != "", Word: word} }

// WordsFact makes a known set of words, which the Fact keeps. The set may be empty: that there is none is known then.
func WordsFact(words ...string) Fact { return Fact{Known: true, Words: words} }

// has reports whether the word, or one of the words, is in the list. Case does not count.
func (f Fact) has(list []string) bool {
	for _, want := range list {
		if f.Word != "" && strings.EqualFold(f.Word, want) {
			return true
		}
		for _, w := range f.Words {
			if strings.EqualFold(w, want) {
				return true
			}
		}
	}
	return false
}

// Kind is what a fact's value is.
type Kind string

// The kinds of facts.
const (
	NumberKind Kind = "number"
	BoolKind   Kind = "true or false"
	WordKind   Kind = "word"
	WordsKind  Kind = "words"
)

// FactSpec describes a fact.
type FactSpec struct {
	Name string
	Kind Kind
	// Unit is the unit of a number: bytes, ms, …
	Unit  string
	About string
}

// FactID is a fact about the Task: an index into TaskFacts.
type FactID int

// The facts about a Task.
const (
	EstimatedBytes FactID = iota
	EstimatedMemoryBytes
	JoinTables
	TableCount
	SubqueryDepth
	OutputColumns
	RowLimit
	SLAMs
	TimeoutMs
	AttemptNumber
	Priority
	HistoryRuns
	HistoryMemoryKills
	SessionBytesRemaining
	SessionQueriesRemaining
	SessionWallMsRemaining
	ReflectionCoversQuery
	NoExpensiveOps
	HasWindow
	HasWindowOverLargePartition
	HasUDF
	HasGroupBy
	HasLimit
	SelectsAllColumns
	ReadOnly
	Parsed
	ClientTag
	PrincipalClass
	Tenant
	User
	Dataset
	Catalog
	DefaultSchema
	Consistency
	QueryType
	Statement
	Command
	Dialect
	Tables
	EngineHint
	RuleTags
	taskFacts
)

// TaskFacts lists every fact about a Task that a rule may test, by FactID.
var TaskFacts = [taskFacts]FactSpec{
	EstimatedBytes:              {"estimated_bytes", NumberKind, "bytes", "What it will scan, by the catalog's estimate."},
	EstimatedMemoryBytes:        {"estimated_memory_bytes", NumberKind, "bytes", "The most memory that earlier runs of this fingerprint have used."},
	JoinTables:                  {"join_tables", NumberKind, "", "References to physical tables behind FROM, JOIN and USING."},
	TableCount:                  {"table_count", NumberKind, "", "Different physical tables read or written."},
	SubqueryDepth:               {"subquery_depth", NumberKind, "", "How deep queries nest."},
	OutputColumns:               {"output_columns", NumberKind, "", "Columns of the result; missing when it selects *."},
	RowLimit:                    {"limit", NumberKind, "", "The LIMIT of the whole statement; missing when there is none or it is a parameter."},
	SLAMs:                       {"sla_ms", NumberKind, "ms", "The SLA, asked for or by default."},
	TimeoutMs:                   {"timeout_ms", NumberKind, "ms", "The timeout, asked for or by default."},
	AttemptNumber:               {"attempt", NumberKind, "", "1 for the first attempt, more after failures."},
	Priority:                    {"priority", NumberKind, "", "The priority that the request states."},
	HistoryRuns:                 {"history_runs", NumberKind, "", "Known runs of this fingerprint on all pools; 0 is a known zero, missing means history could not be asked."},
	HistoryMemoryKills:          {"history_memory_kills", NumberKind, "", "Runs of it that a memory limit ended, and that later successes don't outweigh."},
	SessionBytesRemaining:       {"session_bytes_remaining", NumberKind, "bytes", "What the session's budget leaves; below 0 when it is overspent."},
	SessionQueriesRemaining:     {"session_queries_remaining", NumberKind, "", "Queries that the session's budget leaves."},
	SessionWallMsRemaining:      {"session_wall_ms_remaining", NumberKind, "ms", "Running time that the session's budget leaves."},
	ReflectionCoversQuery:       {"reflection_covers_query", BoolKind, "", "A materialised aggregate or copy can answer it."},
	NoExpensiveOps:              {"no_expensive_ops", BoolKind, "", "No window, UDF, regular expression or JSON function."},
	HasWindow:                   {"has_window", BoolKind, "", "It uses a window function."},
	HasWindowOverLargePartition: {"has_window_over_large_partition", BoolKind, "", "It uses a window function over a partition that is known to be large."},
	HasUDF:                      {"has_udf", BoolKind, "", "It calls a function that no engine ships."},
	HasGroupBy:                  {"has_group_by", BoolKind, "", "It groups."},
	HasLimit:                    {"has_limit", BoolKind, "", "The whole statement has a LIMIT."},
	SelectsAllColumns:           {"selects_all_columns", BoolKind, "", "The outermost query returns *."},
	ReadOnly:                    {"read_only", BoolKind, "", "It changes nothing."},
	Parsed:                      {"parsed", BoolKind, "", "The text could be read, by a parser or by its tokens; always known."},
	ClientTag:                   {"client_tag", WordsKind, "", "The request's tags; none is known to be none."},
	PrincipalClass:              {"principal_class", WordKind, "", "The class of its session: human, batch or agent."},
	Tenant:                      {"tenant", WordKind, "", "Its tenant."},
	User:                        {"user", WordKind, "", "Its user."},
	Dataset:                     {"dataset", WordKind, "", "The data set that the request names."},
	Catalog:                     {"catalog", WordKind, "", "The catalog that the request names for tables without one."},
	DefaultSchema:               {"schema", WordKind, "", "The schema that the request names for tables without one."},
	Consistency:                 {"consistency", WordKind, "", "How fresh its reads must be: read_your_writes, strong, or eventual, which is what a request without it means."},
	QueryType:                   {"query_type", WordKind, "", "The type of query that the request names."},
	Statement:                   {"statement", WordKind, "", "The class of the statement: select, insert, create_table_as, …; the word unknown when its verb is not known."},
	Command:                     {"command", WordKind, "", "The opening words of a statement that the class does not set apart, e.g. show branches."},
	Dialect:                     {"dialect", WordKind, "", "The dialect that the request names."},
	Tables:                      {"tables", WordsKind, "", "The physical tables read or written."},
	EngineHint:                  {"engine_hint", WordKind, "", "The engine or pool that the request asks for; none is known to be none."},
	RuleTags:                    {"rule_tags", WordsKind, "", "The tags that rules further up have set."},
}

// PoolFact is a fact about each pool, named <pool>_<name>: an index into PoolFacts.
type PoolFact int

// The facts about a pool.
const (
	PoolQueueWaitMs PoolFact = iota
	PoolQueued
	PoolRunning
	PoolSlots
	PoolLoad
	PoolOldestQueuedMs
	PoolDonePerSecond
	PoolMemoryUsedBytes
	PoolReadyReplicas
	PoolReady
	PoolHealthy
	poolFacts
)

// PoolFacts lists the facts about each pool, by PoolFact. A stale signal is a missing fact.
var PoolFacts = [poolFacts]FactSpec{
	PoolQueueWaitMs:     {"queue_wait_ms", NumberKind, "ms", "The predicted wait of a query that comes now."},
	PoolQueued:          {"queued", NumberKind, "", "Queries that wait."},
	PoolRunning:         {"running", NumberKind, "", "Queries that run."},
	PoolSlots:           {"slots", NumberKind, "", "Queries that can run at once."},
	PoolLoad:            {"load", NumberKind, "", "Running and waiting queries over slots; 1 is full."},
	PoolOldestQueuedMs:  {"oldest_queued_ms", NumberKind, "ms", "The age of the query that has waited longest."},
	PoolDonePerSecond:   {"done_per_second", NumberKind, "1/s", "Queries that end in a second."},
	PoolMemoryUsedBytes: {"memory_used_bytes", NumberKind, "bytes", "The engine's memory now."},
	PoolReadyReplicas:   {"ready_replicas", NumberKind, "", "Live compute nodes; a pool asleep has 0."},
	PoolReady:           {"ready", BoolKind, "", "It can run a query now."},
	PoolHealthy:         {"healthy", BoolKind, "", "It answered its last check."},
}

// vocabulary is what the rules of one policy may test: the facts about a Task, about its pools, and its latches; and which
// of them any rule does test. Facts keep a place for those alone, so that a decision does not gather what nobody asks for.
type vocabulary struct {
	specs  []FactSpec
	byName map[string]int
	// slot is the place of each fact in Facts, -1 when no rule tests it. tested are the facts with a place, in its order.
	slot   []int
	tested []int
	// latches is the index of the first latch.
	latches int
}

func newVocabulary(pools []Pool, latches []LatchSpec) *vocabulary {
	v := &vocabulary{specs: make([]FactSpec, 0, int(taskFacts)+len(pools)*int(poolFacts)+len(latches))}
	v.specs = append(v.specs, TaskFacts[:]...)
	for _, p := range pools {
		for _, s := range PoolFacts {
			s.Name = p.Name + "_" + s.Name
			v.specs = append(v.specs, s)
		}
	}
	v.latches = len(v.specs)
	for _, l := range latches {
		v.specs = append(v.specs, FactSpec{Name: l.Name, Kind: BoolKind, About: "A latch of this policy."})
	}
	v.byName, v.slot = make(map[string]int, len(v.specs)), make([]int, len(v.specs))
	for i, s := range v.specs {
		v.slot[i] = -1
		if _, taken := v.byName[s.Name]; !taken {
			v.byName[s.Name] = i
		}
	}
	return v
}

// use gives a fact a place in Facts, if it has none yet.
func (v *vocabulary) use(i int) int {
	if v.slot[i] < 0 {
		v.slot[i] = len(v.tested)
		v.tested = append(v.tested, i)
	}
	return v.slot[i]
}

func (v *vocabulary) names() []string {
	out := make([]string, len(v.specs))
	for i, s := range v.specs {
		out[i] = s.Name
	}
	return out
}

// Facts are the facts that the rules of one policy test, about one Task at one moment. What was not set is missing.
type Facts struct {
	words  *vocabulary
	values []Fact
}

// NewFacts returns facts that are all missing.
func (p *Policy) NewFacts() *Facts {
	return &Facts{words: p.words, values: make([]Fact, len(p.words.tested))}
}

// Wants reports whether any rule tests the fact: others need not be gathered.
func (f *Facts) Wants(id FactID) bool { return f.words.slot[id] >= 0 }

// WantsPool is Wants for a fact about the pool with that index in Policy.Pools.
func (f *Facts) WantsPool(pool int, id PoolFact) bool { return f.words.slot[poolIndex(pool, id)] >= 0 }

// Set sets a fact about the Task.
func (f *Facts) Set(id FactID, v Fact) { f.set(int(id), v) }

// SetPool sets a fact about the pool with that index in Policy.Pools.
func (f *Facts) SetPool(pool int, id PoolFact, v Fact) { f.set(poolIndex(pool, id), v) }

// SetLatch sets the latch with that index in Policy.Latches.
func (f *Facts) SetLatch(latch int, v Fact) { f.set(f.words.latches+latch, v) }

// SetName sets a fact by its name. A name that the policy does not know is an error.
func (f *Facts) SetName(name string, v Fact) error {
	i, ok := f.words.byName[name]
	if !ok {
		return fmt.Errorf("no such fact as %q%s", name, suggest(name, f.words.names()))
	}
	f.set(i, v)
	return nil
}

// Get returns a fact by its name, as far as any rule tests it; else it is missing.
func (f *Facts) Get(name string) Fact {
	i, ok := f.words.byName[name]
	if !ok || f.words.slot[i] < 0 {
		return Fact{}
	}
	return f.values[f.words.slot[i]]
}

func (f *Facts) set(i int, v Fact) {
	if slot := f.words.slot[i]; slot >= 0 {
		f.values[slot] = v
	}
}

func poolIndex(pool int, id PoolFact) int { return int(taskFacts) + pool*int(poolFacts) + int(id) }

// Spec finds the description of a fact of this policy by its name.
func (p *Policy) Spec(name string) (FactSpec, error) {
	i, ok := p.words.byName[name]
	if !ok {
		return FactSpec{}, fmt.Errorf("no such fact as %q%s", name, suggest(name, p.words.names()))
	}
	return p.words.specs[i], nil
}
