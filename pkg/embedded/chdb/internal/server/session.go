package server

import (
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// session is a connection that outlives a request, with the settings, the database and the
// temporary tables that its requests gave it.
type session struct {
	conn   *libchdb.Conn
	busy   bool
	expiry *time.Timer
}

// sessions are the sessions by id. There are no users to keep apart: whoever knows an id has it.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

func newSessions() *sessions { return &sessions{byID: map[string]*session{}} }

// take gives the session for a request's exclusive use.
func (s *sessions) take(id string, mustExist bool, open func() (*libchdb.Conn, error)) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byID[id]; ok {
		if found.busy {
			return nil, exception(373, "SESSION_IS_LOCKED", "Session %s is locked by a concurrent client", id)
		}
		found.busy = true
		found.expiry.Stop()
		return found, nil
	}
	if mustExist {
		return nil, exception(372, "SESSION_NOT_FOUND", "Session %s not found", id)
	}
	conn, err := open()
	if err != nil {
		return nil, err
	}
	made := &session{conn: conn, busy: true}
	made.expiry = time.AfterFunc(time.Hour, func() { s.expire(id, made) })
	made.expiry.Stop()
	s.byID[id] = made
	return made, nil
}

// give returns a session, which lives on for the timeout.
func (s *sessions) give(back *session, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	back.busy = false
	back.expiry.Reset(timeout)
}

func (s *sessions) expire(id string, old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old.busy || s.byID[id] != old {
		return
	}
	delete(s.byID, id)
	old.conn.Close()
}

func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.byID {
		old.expiry.Stop()
		old.conn.Close()
		delete(s.byID, id)
	}
}

// connection gives the connection of a request and what to do with it afterwards.
func (s *Server) connection(req *request) (*libchdb.Conn, func(), error) {
	if req.session == "" {
		conn, err := s.open(req.queryID)
		if err != nil {
			return nil, nil, err
		}
		if err := apply(conn, req.settings); err != nil {
			conn.Close()
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
	kept, err := s.sessions.take(req.session, req.sessionCheck, func() (*libchdb.Conn, error) { return s.open("") })
	if err != nil {
		return nil, nil, err
	}
	giveBack := func() { s.sessions.give(kept, req.sessionTimeout) }
	// Settings in the URL are for this request alone, also within a session.
	before, err := current(kept.conn, req.settings)
	if err == nil {
		err = apply(kept.conn, append([]libchdb.Param{{Name: tagSetting, Value: req.queryID}}, req.settings...))
	}
	restore := func() {
		_ = apply(kept.conn, append(before, libchdb.Param{Name: tagSetting, Value: ""}))
		giveBack()
	}
	if err != nil {
		restore()
		return nil, nil, err
	}
	return kept.conn, restore, nil
}

// apply sets settings as a SET statement does, constraints included.
func apply(conn *libchdb.Conn, settings []libchdb.Param) error {
	if len(settings) == 0 {
		return nil
	}
	parts := make([]string, len(settings))
	for i, p := range settings {
		parts[i] = statement.QuoteName(p.Name) + " = " + statement.Quote(p.Value)
	}
	_, err := conn.Query("SET "+strings.Join(parts, ", "), "Null", nil)
	return err
}

// current reads the values that settings have on a connection.
func current(conn *libchdb.Conn, settings []libchdb.Param) ([]libchdb.Param, error) {
	if len(settings) == 0 {
		return nil, nil
	}
	var names []string
	for _, p := range settings {
		names = append(names, statement.Quote(p.Name))
	}
	res, err := conn.Query("SELECT hex(name), hex(value) FROM system.settings WHERE name IN ("+strings.Join(names, ", ")+")", "TabSeparated", nil)
	if err != nil {
		return nil, err
	}
	var out []libchdb.Param
	for line := range strings.Lines(string(res.Data)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, libchdb.Param{Name: unhex(name), Value: unhex(value)})
	}
	return out, nil
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return s
	}
	return string(b)
}
