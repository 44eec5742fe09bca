package failure

import "strings"

// entry is one native code.
type entry struct {
	name  string
	class Class
	// hint replaces the class's hint where the code says more.
	hint string
	// network marks codes of broken connections: how far the submission had come decides between cluster_down and
	// submit_unknown.
	network bool
	// when splits a code that has several meanings. The first match wins; texts are compared in lower case.
	when []meaning
}

type meaning struct {
	contains string
	class    Class
	hint     string
}

// tables has one table per engine kind.
var tables = map[string]map[string]entry{
	"clickhouse": clickhouse,
	"postgres":   postgres,
	"mysql":      mysql8,
	"mariadb":    mariadb,
	"tidb":       tidb,
	"doris":      doris,
	"starrocks":  starrocks,
	"trino":      trino,
	"flightsql":  flightsql,
	"spark":      spark,
}

// types has the classes of an engine's own types of errors, for codes that its table lacks.
var types = map[string]map[string]Class{
	"trino": trinoTypes,
	"spark": sparkTypes,
}

func lookUp(engine, code, message string) (entry, bool) {
	e, ok := tables[engine][code]
	if !ok {
		return entry{}, false
	}
	for _, m := range e.when {
		if strings.Contains(strings.ToLower(message), m.contains) {
			e.class, e.hint, e.network = m.class, m.hint, false
			break
		}
	}
	return e, true
}
