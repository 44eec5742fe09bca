package trino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
)

const queryPath = "/v1/query"

// Find looks an attempt id up, first among the queries that are not over, then in the server's history, which keeps the newest
// ones only. A query that was posted and never started is in neither. One that this client runs is asked for by Trino's own id,
// since whoever follows an attempt asks often, and the list may be long.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	if query, ours := e.mine.Load(id); ours {
		if q, known, err := e.info(ctx, query.(string)); err == nil && known {
			return asRun(q), nil
		}
	}
	for _, states := range [][]string{activeStates, {stateFinished, stateFailed}} {
		found, err := e.runs(ctx, id, states)
		if err != nil {
			return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
		}
		if len(found) > 0 {
			return asRun(newest(found)), nil
		}
	}
	return engine.Run{State: engine.RunUnknown}, nil
}

// newest is the one that counts: one that has finished tells more than one that failed, as nothing is started twice under one
// id unless the first one is known not to have run.
func newest(found []queryInfo) queryInfo {
	best := found[0]
	for _, q := range found[1:] {
		if q.State == stateFinished || (best.State != stateFinished && q.QueryID > best.QueryID) {
			best = q
		}
	}
	return best
}

func asRun(q queryInfo) engine.Run {
	run := engine.Run{State: engine.RunActive, Stats: q.stats(), Elapsed: time.Duration(q.Stats.ExecutionTime)}
	if p := q.Stats.ProgressPercentage; p.known {
		share := min(max(p.of100/100, 0), 1)
		run.Progress = &share
	}
	switch q.State {
	case stateQueued, stateWaiting:
		run.Waiting = true
	case stateFinished:
		run.State = engine.RunFinished
	case stateFailed:
		run.State, run.Failure = engine.RunFailed, q.failure()
		if q.ErrorCode != nil && q.ErrorCode.Code == codeCanceled {
			run.State = engine.RunCancelled // by Kill, here or elsewhere; operators have a request of their own
		}
	}
	return run
}

// runs lists this attempt's queries in some states. The list may be long, so it is read one by one.
func (e *Engine) runs(ctx context.Context, id string, states []string) ([]queryInfo, error) {
	if id == "" {
		return nil, nil // a query without an id is nobody's
	}
	var found []queryInfo
	uri := queryPath + "?" + url.Values{"state": states}.Encode()
	err := e.call(ctx, http.MethodGet, uri, e.header(), "", func(body io.Reader) error {
		d := json.NewDecoder(body)
		if begin, err := d.Token(); err != nil {
			return unreadable(err)
		} else if begin != json.Delim('[') {
			return fmt.Errorf("%w: it is no list", errGarbage)
		}
		for d.More() {
			var q queryInfo
			if err := d.Decode(&q); err != nil {
				return unreadable(err)
			}
			if !slices.Contains(states, q.State) {
				continue // an older server lists all
			}
			if q.Session.TraceToken == id || slices.Contains(q.Session.ClientTags, id) {
				found = append(found, q)
			}
		}
		if _, err := d.Token(); err != nil {
			return unreadable(err)
		}
		return nil
	})
	return found, err
}

// Kill tells the server to stop an attempt and waits until nothing of it runs on any worker.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	found, err := e.runs(ctx, id, activeStates)
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
	}
	for _, q := range found {
		if err := e.stop(ctx, q.QueryID, ""); err != nil {
			return true, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
		}
	}
	return len(found) > 0, nil
}

// stop kills a query by Trino's own id and waits until it is gone. Only a request to the address of its next page ends one that
// has not started yet, and only one to its id any other; the server says yes to both whatever it knows, so it is asked.
func (e *Engine) stop(ctx context.Context, id, uri string) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		var err error
		if uri != "" {
			err = e.call(ctx, http.MethodDelete, uri, e.header(), "", nil)
		}
		err = errors.Join(err, e.call(ctx, http.MethodDelete, queryPath+"/"+url.PathEscape(id), e.header(), "", nil))
		q, known, asked := e.info(ctx, id)
		switch {
		case asked == nil && (!known || q.Final):
			return nil
		case denied(err):
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			if asked == nil && q.over() {
				return nil // its coordinator has ended it; a worker has not reported back
			}
			return errors.Join(context.Cause(ctx), err, asked)
		}
	}
}

func denied(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden)
}

// info asks for one query. One that has not started is not known, nor is one that the history has forgotten.
func (e *Engine) info(ctx context.Context, id string) (q queryInfo, known bool, err error) {
	err = e.call(ctx, http.MethodGet, queryPath+"/"+url.PathEscape(id)+"?pruned=true", e.header(), "", decode(&q))
	if status, ok := errors.AsType[*statusError](err); ok && (status.status == http.StatusGone || status.status == http.StatusNotFound) {
		return q, false, nil
	}
	return q, err == nil, err
}

// failure is what the server keeps of a failed query.
func (q queryInfo) failure() *engine.Error {
	if q.ErrorCode == nil {
		return nil
	}
	e := &engine.Error{
		Engine: Kind, Code: strconv.Itoa(q.ErrorCode.Code), Name: q.ErrorCode.Name, Type: q.ErrorType, Phase: engine.Answered,
		Err: errors.New("the server's history says " + q.ErrorCode.Name),
	}
	if q.Failure != nil && q.Failure.Message != "" {
		e.Err = errors.New(q.Failure.Message)
	}
	return e
}
