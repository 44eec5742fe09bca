package profiler

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

const (
	complainEvery = 10 * time.Second
	longestGist   = 200 // bytes of an error in a log line
)

// complaints keeps a history that is down from filling the log: one line per topic and while, with how often it failed.
type complaints struct {
	mu sync.Mutex
	of map[string]complaint
}

type complaint struct {
	at    time.Time // of the last line
	times int       // since then
}

func newComplaints() *complaints { return &complaints{of: map[string]complaint{}} }

// add counts a failure. When a line is due it says how many failures there were since the last one, this one included.
func (c *complaints) add(topic string, now time.Time) (times int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.of[topic]
	have.times++
	if due = have.at.IsZero() || now.Sub(have.at) >= complainEvery; due {
		times = have.times
		have = complaint{at: now}
	}
	c.of[topic] = have
	return times, due
}

// gistOfError is an error of the history without the request's address and the statement.
func gistOfError(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	gist := err.Error()
	if ex, ok := errors.AsType[*clickhouse.Exception](err); ok {
		gist = ex.Message
	}
	gist, _, _ = strings.Cut(strings.TrimSpace(gist), "\n")
	if len(gist) > longestGist {
		gist = strings.ToValidUTF8(gist[:longestGist], "") + "…"
	}
	return gist
}
