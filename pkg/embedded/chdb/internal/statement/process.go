package statement

import "strings"

// ReadsProcesses says that the statement looks at the list of running queries.
func (s Statement) ReadsProcesses() bool {
	if s.showsProcesslist() {
		return true
	}
	for i := range s.tokens {
		if s.processesAt(i) {
			return true
		}
	}
	return false
}

// WithProcesses is the statement with system.processes replaced by another table.
func (s Statement) WithProcesses(table string) (Statement, error) {
	if s.showsProcesslist() {
		return Parse("SELECT * FROM "+table+" ORDER BY elapsed DESC"+s.text[s.tokens[1].end:], true)
	}
	var b strings.Builder
	from := 0
	for i := range s.tokens {
		if !s.processesAt(i) {
			continue
		}
		b.WriteString(s.text[from:s.tokens[i].start])
		b.WriteString(table)
		from = s.tokens[i+2].end
	}
	b.WriteString(s.text[from:])
	return Parse(b.String(), true)
}

func (s Statement) showsProcesslist() bool {
	return s.is(0, "SHOW") && s.is(1, "PROCESSLIST")
}

// processesAt says that system.processes begins at token i.
func (s Statement) processesAt(i int) bool {
	return i+2 < len(s.tokens) && s.isName(i, "system") && s.value(i+1) == "." && s.isName(i+2, "processes")
}

// Kill is a KILL QUERY.
type Kill struct {
	// Condition is the text behind WHERE, with query_id replaced.
	Condition string
	// Sync says that the caller wants to wait for the end of the queries.
	Sync bool
	// Test says that nothing is to be killed.
	Test bool
}

// Kill is the KILL QUERY … WHERE … that the statement is, with the column query_id replaced by the
// given expression; ok is false when it is something else.
func (s Statement) Kill(queryID string) (kill Kill, ok bool) {
	if !s.is(0, "KILL") || !s.is(1, "QUERY") {
		return Kill{}, false
	}
	where := -1
	for i := range s.tokens {
		if s.tokens[i].depth == 0 && s.is(i, "WHERE") {
			where = i
			break
		}
	}
	if where < 0 || where+1 >= len(s.tokens) {
		return Kill{}, false
	}
	end := len(s.tokens)
	if i := s.formatClause(); i > where {
		end = i
	}
	switch last := end - 1; {
	case s.is(last, "SYNC"):
		kill.Sync, end = true, last
	case s.is(last, "ASYNC"):
		end = last
	case s.is(last, "TEST"):
		kill.Test, end = true, last
	}
	if end <= where+1 {
		return Kill{}, false
	}
	var b strings.Builder
	from := s.tokens[where].end
	for i := where + 1; i < end; i++ {
		if s.isName(i, "query_id") && !(i > 0 && s.value(i-1) == ".") {
			b.WriteString(s.text[from:s.tokens[i].start])
			b.WriteString(queryID)
			from = s.tokens[i].end
		}
	}
	b.WriteString(s.text[from:s.tokens[end-1].end])
	kill.Condition = strings.TrimSpace(b.String())
	return kill, true
}
