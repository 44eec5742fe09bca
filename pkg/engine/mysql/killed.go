package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
)

// watchAfter is how long a statement runs before it is watched whether somebody kills its connection. Operators kill what takes long;
// of a short one that broke it can't be told from what is left at the server whether it was over just before.
const watchAfter = time.Second

var errKilled = errors.New("the server hung up in the middle of the statement; it is up, has let the connection go, and was told to kill something: somebody has killed the connection (KILL CONNECTION)")

// killing is what is known of the server's kills while one statement runs. KILL CONNECTION says nothing to its client, and looks like
// a broken network; there is no single trace of it, but several that come together for no other reason.
type killing struct {
	session *session
	timer   *time.Timer
	before  atomic.Int64 // kills by others before, or unwatched
}

const unwatched = -1

// watch begins when the statement is sent, and ends with stop.
func (e *Engine) watch(s *session) *killing {
	k := &killing{session: s}
	k.before.Store(unwatched)
	k.timer = time.AfterFunc(watchAfter, func() {
		ctx, cancel := context.WithTimeout(e.life, e.cfg.DialTimeout)
		defer cancel()
		own := e.kills.Load() // in this order one that is under way counts as there before
		if _, all, err := e.status(ctx); err == nil {
			k.before.Store(all - own)
		}
	})
	return k
}

func (k *killing) stop() { k.timer.Stop() }

// judge gives a statement whose connection broke before its first row the class that it deserves: it was killed if the server closed
// the connection properly, keeps no trace of it, was told by somebody else to kill since the watch began, and neither was started
// again nor is about to end.
func (k *killing) judge(failed *engine.Error) *engine.Error {
	s, e := k.session, k.session.engine
	if failed.Code != "" || failed.Phase != engine.SentUnknown || k.before.Load() == unwatched || !s.reply.hungUp.Load() || e.life.Err() != nil {
		return failed
	}
	ctx, cancel := context.WithTimeout(e.life, e.cfg.DialTimeout)
	defer cancel()
	// At once: a statement that runs on, because it was something between that hung up, may end by itself in a moment.
	var command string
	err := e.control.QueryRowContext(ctx, aside+"SELECT command FROM information_schema.processlist WHERE id = ?", s.id).Scan(&command)
	if gone := errors.Is(err, sql.ErrNoRows) || err == nil && strings.EqualFold(command, "killed"); !gone {
		return failed
	}
	up, all, err := e.status(ctx)
	if err != nil || up < time.Since(s.made) || all-e.kills.Load() <= k.before.Load() || e.goingDown() {
		return failed
	}
	return &engine.Error{Engine: failed.Engine, Code: strconv.Itoa(codeKilled), Phase: engine.Answered, Err: errKilled}
}

// status is how long the server has been up, and how many times it was told to kill since then.
func (e *Engine) status(ctx context.Context) (up time.Duration, kills int64, err error) {
	rows, err := e.control.QueryContext(ctx, aside+"SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Com_kill')")
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return 0, 0, err
		}
		if strings.EqualFold(name, "uptime") {
			up = time.Duration(n) * time.Second
		} else {
			kills = n
		}
	}
	return up, kills, rows.Err()
}
