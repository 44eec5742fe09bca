package server

import (
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// killQueries carries out a KILL QUERY. The engine's own SYNC never returns, so the server asks for
// ASYNC and watches the queries go away itself.
func (q *query) killQueries(stmt statement.Statement) error {
	kill, ok := stmt.Kill(queryIDColumn)
	if !ok {
		return exception(62, "SYNTAX_ERROR", "KILL QUERY needs a WHERE")
	}
	format := stmt.Format(q.req.format)
	condition := "(" + kill.Condition + ") AND " + queryIDColumn + " != " + statement.Quote(q.req.queryID)
	found, err := q.conn.Query("SELECT hex(query_id), hex("+queryIDColumn+"), hex(user), hex("+queryColumn+") FROM system.processes WHERE "+condition, "TabSeparated", q.req.params)
	if err != nil {
		return err
	}
	status := "waiting"
	if kill.Test {
		status = "unknown_status"
	}
	var own, ids, rows []string
	for line := range strings.Lines(string(found.Data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		own = append(own, statement.Quote(unhex(f[0])))
		ids = append(ids, unhex(f[1]))
		rows = append(rows, "('"+status+"', unhex('"+f[1]+"'), unhex('"+f[2]+"'), unhex('"+f[3]+"'))")
	}
	if !kill.Test {
		// A query that has been accepted but has not reached the engine yet is in nobody's list of
		// processes, so the ids that the statement names are looked up here as well.
		q.s.running.cancelIDs(append(ids, stmt.Literals()...), q.req.queryID)
		if len(own) > 0 {
			if _, err := q.conn.Query("KILL QUERY WHERE query_id IN ("+strings.Join(own, ", ")+") ASYNC", "Null", nil); err != nil {
				return err
			}
		}
		if kill.Sync {
			if err := q.untilGone(own); err != nil {
				return err
			}
			for i := range rows {
				rows[i] = strings.Replace(rows[i], status, "finished", 1)
			}
		}
	}
	answer := "SELECT * FROM values('kill_status String, query_id String, user String, query String', " + strings.Join(rows, ", ") + ")"
	if len(rows) == 0 {
		answer = "SELECT '' AS kill_status, '' AS query_id, '' AS user, '' AS query WHERE 0"
	}
	parsed, err := statement.Parse(answer+" FORMAT "+format, true)
	if err != nil {
		return err
	}
	q.req.params = nil
	return q.stream(parsed)
}

// untilGone waits until none of the queries, given as quoted ids of the engine, runs any more.
func (q *query) untilGone(own []string) error {
	if len(own) == 0 {
		return nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		left, err := q.conn.Query("SELECT count() FROM system.processes WHERE query_id IN ("+strings.Join(own, ", ")+")", "TabSeparated", nil)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(left.Data)) == "0" {
			return nil
		}
		select {
		case <-q.ctx.Done():
			return q.ctx.Err()
		case <-time.After(wait):
		}
	}
}
