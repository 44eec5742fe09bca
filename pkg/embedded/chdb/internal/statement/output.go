package statement

import "strings"

// Format is the format that the statement itself asks for, or the given one.
func (s Statement) Format(otherwise string) string {
	if i := s.formatClause(); i >= 0 {
		return s.value(i + 1)
	}
	return otherwise
}

// IntoFile is the statement with its result written to the file at path, in the format that it asks
// for itself or else in the given one.
func (s Statement) IntoFile(path, otherwise string) string {
	into := "\nINTO OUTFILE " + Quote(path) + " TRUNCATE"
	if i := s.formatClause(); i >= 0 {
		at := s.tokens[i].start
		return s.text[:at] + into + " " + s.text[at:]
	}
	return s.text + into + "\nFORMAT " + otherwise
}

// formatClause is the index of the word FORMAT of the FORMAT clause at the end of the statement, or -1.
// The clause is FORMAT and a name, with nothing behind it or with a SETTINGS clause behind it.
func (s Statement) formatClause() int {
	for i := len(s.tokens) - 2; i > 0; i-- {
		if s.tokens[i].depth > 0 || !s.is(i, "FORMAT") || s.tokens[i+1].kind != tokenWord {
			continue
		}
		if i+2 < len(s.tokens) && !s.is(i+2, "SETTINGS") {
			continue
		}
		if s.endsExpression(i - 1) {
			return i
		}
	}
	return -1
}

// endsExpression says that token i can be the last of an expression or of a table's name, so that
// a clause may follow. Without it, a column named format in ORDER BY would be taken for a clause.
func (s Statement) endsExpression(i int) bool {
	t := s.tokens[i]
	switch t.kind {
	case tokenSymbol:
		return strings.ContainsRune(")]}*", rune(s.text[t.start]))
	case tokenWord:
		return !openWords[strings.ToUpper(s.value(i))]
	}
	return true
}

// openWords are the words an expression must still follow.
var openWords = map[string]bool{
	"SELECT": true, "DISTINCT": true, "BY": true, "WHERE": true, "PREWHERE": true, "HAVING": true, "QUALIFY": true,
	"ON": true, "USING": true, "AND": true, "OR": true, "NOT": true, "XOR": true, "IN": true, "LIKE": true, "ILIKE": true,
	"BETWEEN": true, "IS": true, "CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "AS": true, "FROM": true,
	"JOIN": true, "LIMIT": true, "OFFSET": true, "TABLE": true, "WITH": true, "SET": true,
}
