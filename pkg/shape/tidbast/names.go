package tidbast

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// name prints the qualified name at i. MySQL knows a schema and a table, and a column in them: what stands further left is
// joined to the schema.
func (p *shim) name(i int) int {
	var parts []string
	end := i
	for {
		t := p.tok(end)
		if t.Kind != lex.Bare && t.Kind != lex.Quoted {
			break
		}
		parts = append(parts, lex.Name(p.s[t.Off:t.End], t.Kind == lex.Quoted, p.d))
		end++
		if p.punct(end) != '.' {
			break
		}
		end++
	}
	star := p.punct(end-1) == '.' // t.*
	if star && p.raw(end) != "*" {
		p.refused = true
		return end
	}
	if len(parts) == 1 && !star && p.tok(i).Kind == lex.Bare && (!p.wantsTable(i) || parts[0] == "dual" && p.d.HasDual()) {
		if p.unquoted(i, parts[0]) {
			return end
		}
	}
	keep := 3 // schema, table and column
	if p.wantsTable(i) || star {
		keep = 2
	}
	if over := len(parts) - keep; over > 0 {
		p.rewrote = true
		parts = append([]string{strings.Join(parts[:over+1], joint)}, parts[over+1:]...)
	}
	for k, part := range parts {
		if k > 0 {
			p.out = append(p.out, '.')
		}
		p.quote(part)
	}
	if star {
		p.out = append(p.out, ".* "...)
		return end + 1
	}
	p.out = append(p.out, ' ')
	return end
}

// unquoted prints a name that is better left without quotes: that of a function, a type, a unit or a modifier.
func (p *shim) unquoted(i int, name string) bool {
	if p.punct(i+1) == '(' || p.tok(i-1).Word == lex.KwInterval || p.tok(i-2).Word == lex.KwInterval || p.tok(i-1).Word == lex.KwEnd || p.typed(i) {
		p.write(p.raw(i))
		return true
	}
	switch name {
	case "sql_no_cache", "sql_cache", "sql_calc_found_rows", "sql_small_result", "sql_big_result", "sql_buffer_result", "dual", "collate",
		"current_date", "current_timestamp", "current_time", "current_user", "localtime", "localtimestamp", "quick", "binary", "sounds",
		"preceding", "following", "unbounded", "mod", "unknown", "both", "leading", "trailing", "force", "month", "year", "day", "hour",
		"minute", "second", "quarter", "week", "character", "charset", "utf8", "utf8mb4", "signed", "unsigned", "char":
		p.write(p.raw(i))
		return true
	}
	return false
}

// typed says that the word belongs to a type behind AS in CAST.
func (p *shim) typed(i int) bool {
	return p.casts[len(p.casts)-1] && p.tok(i-1).Word == lex.KwAs
}

func (p *shim) quote(part string) {
	p.out = append(p.out, '`')
	p.out = append(p.out, strings.ReplaceAll(part, "`", "``")...)
	p.out = append(p.out, '`')
}

// wantsTable says that the name at i is a table's.
func (p *shim) wantsTable(i int) bool {
	switch p.tok(i - 1).Word {
	case lex.KwFrom, lex.KwJoin, lex.KwInto, lex.KwUpdate, lex.KwTable, lex.KwStraightJoin:
		return true
	case lex.KwUsing:
		return true
	}
	return p.inFrom() && (p.punct(i-1) == ',' || p.punct(i-1) == '(')
}
