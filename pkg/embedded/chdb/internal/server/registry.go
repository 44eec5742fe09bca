package server

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errKilled ends a query because KILL QUERY or the end of the server asked for it.
var errKilled = errors.New("the query was killed")

// entry is a request under way.
type entry struct {
	id      string
	cancel  context.CancelCauseFunc
	counted bool
}

// registry knows the requests under way by their query id.
type registry struct {
	mu      sync.Mutex
	byID    map[string]*entry
	counted int
	max     int
	idle    chan struct{} // closed when nothing runs any more; nil unless someone waits
}

func newRegistry(maxConcurrent int) *registry {
	return &registry{byID: map[string]*entry{}, max: maxConcurrent}
}

// add takes a request in, unless its id is in use or, for one that counts, no place is free.
func (r *registry) add(e *entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byID[e.id]; taken {
		return exception(216, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", "Query with id = %s is already running.", e.id)
	}
	if e.counted && r.max > 0 && r.counted >= r.max {
		return exception(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many simultaneous queries. Maximum: %d.", r.max)
	}
	r.byID[e.id] = e
	if e.counted {
		r.counted++
	}
	return nil
}

func (r *registry) remove(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, e.id)
	if e.counted {
		r.counted--
	}
	if len(r.byID) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// cancelIDs cancels the requests whose id is among the given ones, except one.
func (r *registry) cancelIDs(ids []string, except string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.byID {
		if id != except && slices.Contains(ids, id) {
			e.cancel(errKilled)
		}
	}
}

func (r *registry) cancelAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byID {
		e.cancel(errKilled)
	}
}

// wait returns when nothing runs, or with the context's error.
func (r *registry) wait(ctx context.Context) error {
	r.mu.Lock()
	if len(r.byID) == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
