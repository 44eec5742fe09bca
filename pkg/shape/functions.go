package shape

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed builtins.txt
var builtinText string

// builtins are the functions that one of the engines ships. A name that any of them knows is no user's function: a router
// must rather miss one than send every query with a rare function to the batch pool.
var builtins = sync.OnceValue(func() map[string]bool {
	m := make(map[string]bool, 3000)
	for line := range strings.Lines(builtinText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.FieldsSeq(line) {
			m[name] = true
		}
	}
	return m
})

// builtin says whether an engine ships the function, given in lower case.
func builtin(name string) bool {
	if builtins()[name] {
		return true
	}
	for _, family := range families {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return combined(name)
}

// families are prefixes that engines keep to themselves.
var families = []string{"st_", "pg_", "jsonb_", "regr_", "bitmap_", "hll_", "aes_"}

// combinators are what ClickHouse lets stand behind the name of an aggregate.
var combinators = []string{"if", "array", "map", "state", "merge", "foreach", "distinct", "ordefault", "ornull", "resample", "argmin", "argmax", "simplestate", "mergestate"}

// combined says whether a name is an aggregate with combinators: sumArrayIf.
func combined(name string) bool {
	for range 3 {
		cut := false
		for _, c := range combinators {
			if base, ok := strings.CutSuffix(name, c); ok && base != "" {
				if builtins()[base] {
					return isAggregate(base) || strings.HasPrefix(base, "quantile") || strings.HasPrefix(base, "uniq") || strings.HasPrefix(base, "group")
				}
				name, cut = base, true
				break
			}
		}
		if !cut {
			return false
		}
	}
	return false
}

// systemSchema says that a qualifier names the engine's own functions.
func systemSchema(name string) bool {
	switch name {
	case "pg_catalog", "information_schema", "sys", "system", "builtin":
		return true
	}
	return false
}

func isRegex(name string) bool {
	if strings.HasPrefix(name, "regexp") || strings.HasPrefix(name, "regex_") {
		return true
	}
	switch name {
	case "rlike", "match", "multimatchany", "multimatchanyindex", "extractall", "extractallgroups", "extractgroups", "replaceregexpall",
		"replaceregexpone", "countmatches", "countmatchescaseinsensitive", "splitbyregexp", "like_regex", "hyperscan", "rlike_all":
		return true
	}
	return false
}

func isJSON(name string) bool {
	if strings.HasPrefix(name, "json") || strings.HasPrefix(name, "get_json") || strings.HasPrefix(name, "simplejson") || strings.HasPrefix(name, "visitparam") {
		return true
	}
	switch name {
	case "from_json", "to_json", "schema_of_json", "parse_json", "to_jsonb", "row_to_json", "array_to_json", "is_json_scalar", "variant_get", "parse_url_json":
		return true
	}
	return false
}

// isAggregate says that a call folds rows, where it matters that one does.
func isAggregate(name string) bool {
	switch name {
	case "count", "sum", "avg", "min", "max", "stddev", "variance", "group_concat", "string_agg", "array_agg", "listagg", "any_value",
		"approx_distinct", "uniq", "uniqexact", "grouparray", "collect_list", "collect_set", "max_by", "min_by", "argmax", "argmin", "bool_or",
		"bool_and", "arbitrary", "percentile", "percentile_approx", "approx_percentile", "quantile", "median", "any", "anylast", "sumif", "countif",
		"ndv", "bitmap_union", "hll_union", "json_agg", "jsonb_agg", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "corr", "first", "last",
		"mode", "histogram", "every", "some", "json_arrayagg", "json_objectagg", "bit_and", "bit_or", "bit_xor", "checksum", "multi_distinct_count":
		return true
	}
	return false
}

// sideEffect names the functions that change something though they stand in a query.
func sideEffect(name string) Effect {
	switch name {
	case "nextval", "setval", "lo_create", "lo_unlink", "lo_import", "lo_export", "lo_put", "lowrite", "dblink_exec", "pg_notify", "set_config",
		"pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile", "pg_switch_wal", "pg_create_restore_point",
		"pg_logical_emit_message", "txid_current", "pg_replication_slot_advance", "pg_drop_replication_slot", "pg_stat_reset",
		"pg_create_logical_replication_slot", "pg_create_physical_replication_slot", "pg_start_backup", "pg_stop_backup", "last_insert_id_set":
		return Once
	case "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_try_advisory_lock",
		"pg_try_advisory_lock_shared", "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared", "pg_advisory_unlock",
		"pg_advisory_unlock_all", "pg_advisory_unlock_shared", "get_lock", "release_lock", "release_all_locks":
		return LockEffect
	}
	return NoEffect
}

// lower folds ASCII alone.
func lower(s string) string { return strings.ToLower(s) }
