package server

import (
	"fmt"
	"slices"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// tagSetting carries the id of the running query. It is a setting of the library that names the
// program that uses it and has no effect on queries; system.processes shows it.
const tagSetting = "chdb_client_name"

// queryIDColumn is the id the client gave, or the engine's own where there is none.
const queryIDColumn = "if(Settings['" + tagSetting + "'] = '', query_id, Settings['" + tagSetting + "'])"

// processesView is system.processes as clients should see it. The system database lives in memory,
// so the view is made again at every start.
const processesView = "system.processes_of_clients"

// queryColumn is the statement as the client wrote it, or nearly so.
const queryColumn = `replaceAll(replaceRegexpOne(query, '\\nINTO OUTFILE ''/proc/self/fd/\\d+'' TRUNCATE(\\nFORMAT \\w+$| )', ''), '` + processesView + `', 'system.processes')`

const createProcessesView = "CREATE VIEW " + processesView + ` AS
SELECT * REPLACE (
    ` + queryIDColumn + ` AS query_id,
    if(is_initial_query, ` + queryIDColumn + `, initial_query_id) AS initial_query_id,
    ` + queryColumn + ` AS query,
    mapFilter((k, v) -> k != '` + tagSetting + `', Settings) AS Settings)
FROM system.processes`

// Prepare makes what the server needs inside the engine, once per start.
func Prepare(conn *libchdb.Conn) error {
	for _, sql := range []string{"DROP VIEW IF EXISTS " + processesView, createProcessesView} {
		if _, err := conn.Query(sql, "Null", nil); err != nil {
			return fmt.Errorf("making %s: %w", processesView, err)
		}
	}
	return nil
}

// open gives a connection whose queries carry the given id.
func (s *Server) open(queryID string) (*libchdb.Conn, error) {
	args := s.cfg.ConnectArgs
	if queryID != "" {
		args = append(slices.Clip(args), "--"+tagSetting+"="+queryID)
	}
	return s.lib.Connect(args)
}

// kill asks the engine to end the query with this id. It does not wait.
func (s *Server) kill(queryID string) error {
	conn, err := s.open("")
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Query("KILL QUERY WHERE Settings['"+tagSetting+"'] = "+statement.Quote(queryID)+" ASYNC", "Null", nil)
	if err != nil {
		return fmt.Errorf("killing query %s: %w", queryID, err)
	}
	return nil
}
