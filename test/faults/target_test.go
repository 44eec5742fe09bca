package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/services/executor"
)

// target is an engine, and its dialect.
type target struct {
	name, kind string
	addr       string
	url        func(addr string) string
	config     executor.EngineConfig
	resources  map[string]executor.Limits
	sessions   bool   // an attempt's session is made ready before its statement leaves
	whole      bool   // a statement's answer comes over other connections than it went
	resumes    bool   // it vouches for what it ran: the end of a write, or its rows, can be had over another connection
	blind      bool   // nobody but the client that started it knows what runs there, or can stop it
	tickets    bool   // a read runs once its rows are asked for
	queue      string // unused when the queue is the executor's own line
	requests   func() requests

	quick, quickAnswer string
	slow, slowAnswer   string // most of a second
	write, slowWrite   string // one row of one number in "written"
	large              string
	largeRows          int64
	first, more        int // bytes of the answer after which there are rows, and bytes of some more
	broken             []broken

	kill     func()        // kill -9, and start it again
	restarts time.Duration // how much longer that takes than a moment
}

// broken is a statement that fails.
type broken struct {
	sql, resource, class string
	late                 bool // behind its first rows
}

// pick chooses one of the errors of a moment.
func (e *target) pick(n int, m moment) broken {
	var fit []broken
	for _, b := range e.broken {
		if b.late == (m == delivering) {
			fit = append(fit, b)
		}
	}
	return fit[n%len(fit)]
}

// stop kills a run at the engine, as an operator does.
func (e *target) stop(t testing.TB, attempt string) {
	c := e.config
	other, err := engines.Open(engines.Config{Name: "operator", Kind: c.Kind, URL: e.url(e.addr), User: c.User, Database: c.Database})
	if err != nil {
		t.Errorf("opening the engine as an operator: %v", err)
		return
	}
	defer other.Close()
	ctx, cancel := context.WithTimeout(context.Background(), arriving)
	defer cancel()
	for ctx.Err() == nil {
		if found, err := other.Kill(ctx, attempt); err == nil && found {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wrongFile says what is wrong with a result's file.
func (l *lane) wrongFile(r record) string {
	res := r.outcomes[0].Result
	if res == nil || res.File == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(l.results, res.File))
	if err != nil {
		return "its result: " + err.Error()
	}
	if n := int64(bytes.Count(text, []byte("\n"))); n != res.Rows {
		return fmt.Sprintf("its result has %d lines for %d rows", n, res.Rows)
	}
	return ""
}

// written counts the rows of each number, asked of the engine itself.
func (e *target) written() (map[int]int, error) {
	c := e.config
	other, err := engines.Open(engines.Config{Name: "counter", Kind: c.Kind, URL: e.url(e.addr), User: c.User, Database: c.Database})
	if err != nil {
		return nil, err
	}
	defer other.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rows, err := other.Submit(ctx, engine.Query{ID: "count/1", SQL: "SELECT n, count(*) FROM written GROUP BY n"})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int]int{}
	for rows.Next() {
		v, err := rows.Values()
		if err != nil {
			return nil, err
		}
		var n, k int
		if _, err := fmt.Sscan(fmt.Sprint(v[0], " ", v[1]), &n, &k); err != nil {
			return nil, fmt.Errorf("reading %v: %w", v, err)
		}
		out[n] = k
	}
	return out, rows.Err()
}
