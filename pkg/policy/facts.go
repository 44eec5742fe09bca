package policy

import "strings"

// Fact is a named fact about a Task and the moment: a number, a truth value or a set of words. The zero Fact is absent.
type Fact struct {
	Known  bool
	Number float64
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

// WordFact makes a known set of words; empty words are left out, and a set with none is absent.
func WordFact(words ...string) Fact {
	f := Fact{}
	for _, w := range words {
		if w != "" {
			f.Words, f.Known = append(f.Words, w), true
		}
	}
	return f
}

// Facts are the facts a rule may test, by name. A name that is not in it is absent, and an absent fact matches nothing.
type Facts map[string]Fact

type factKind string

const (
	numberKind factKind = "number"
	boolKind   factKind = "true or false"
	wordKind   factKind = "word or list of words"
)

// factTable lists every fact that a rule may test. Facts about a pool carry the pool's name as a prefix, e.g.
// interactive_queue_wait_ms; see poolFacts.
var factTable = map[string]factKind{
	"estimated_bytes":                 numberKind,
	"estimated_memory_bytes":          numberKind,
	"join_tables":                     numberKind,
	"table_count":                     numberKind,
	"subquery_depth":                  numberKind,
	"output_columns":                  numberKind,
	"limit":                           numberKind,
	"sla_ms":                          numberKind,
	"attempt":                         numberKind,
	"history_runs":                    numberKind,
	"history_memory_kills":            numberKind,
	"session_bytes_remaining":         numberKind,
	"session_queries_remaining":       numberKind,
	"session_wall_ms_remaining":       numberKind,
	"reflection_covers_query":         boolKind,
	"no_expensive_ops":                boolKind,
	"has_window":                      boolKind,
	"has_window_over_large_partition": boolKind,
	"has_udf":                         boolKind,
	"has_group_by":                    boolKind,
	"read_only":                       boolKind,
	"parsed":                          boolKind,
	"client_tag":                      wordKind,
	"principal_class":                 wordKind,
	"tenant":                          wordKind,
	"user":                            wordKind,
	"dataset":                         wordKind,
	"query_type":                      wordKind,
	"statement":                       wordKind,
	"dialect":                         wordKind,
	"tables":                          wordKind,
	"engine_hint":                     wordKind,
}

// poolFacts are the facts about each pool, named <pool>_<fact>.
var poolFacts = map[string]factKind{
	"queue_wait_ms": numberKind,
	"queued":        numberKind,
	"running":       numberKind,
	"ready":         boolKind,
	"healthy":       boolKind,
}

// kindOf finds the kind of a fact, given the names of the pools.
func kindOf(name string, pools []string) (factKind, bool) {
	if kind, ok := factTable[name]; ok {
		return kind, true
	}
	for _, pool := range pools {
		if rest, ok := strings.CutPrefix(name, pool+"_"); ok {
			if kind, ok := poolFacts[rest]; ok {
				return kind, true
			}
		}
	}
	return "", false
}
