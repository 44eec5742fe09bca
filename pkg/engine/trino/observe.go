package trino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/signal"
)

const source = "engine"

// Canary runs the configured statement to its end, or kills it when ctx ends. It has the user, source and tags of all queries,
// so that the server puts it in the same resource group, which is kept for Observe.
func (e *Engine) Canary(ctx context.Context) error {
	rows, err := e.submit(ctx, engine.Query{SQL: e.cfg.Canary}, false)
	if err != nil {
		return fmt.Errorf("running the canary: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("running the canary: %w", err)
	}
	if e.cfg.ResourceGroup != "" {
		return nil
	}
	if q, known, err := e.info(ctx, rows.query()); err == nil && known && len(q.ResourceGroup) > 0 {
		e.group.Store(&q.ResourceGroup)
	}
	return nil
}

// resourceGroup is the group to observe, nil while none is known.
func (e *Engine) resourceGroup() []string {
	if e.cfg.ResourceGroup != "" {
		return strings.Split(e.cfg.ResourceGroup, ".")
	}
	if g := e.group.Load(); g != nil {
		return *g
	}
	return nil
}

type groupState struct {
	Running int64 `json:"numRunningQueries"`
	Queued  int64 `json:"numQueuedQueries"`
	Limit   int64 `json:"hardConcurrencyLimit"`
}

// Observe asks whether the server has started, and for the resource group that queries of this client go to: how many run and
// wait in it, and how many may run. A group's own limit need not be what holds its queries up; its parents' may be. The memory
// is that of all queries of the cluster, for those who may see it. A server that does not answer is known to be unhealthy; all
// else is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	var info struct {
		Starting *bool `json:"starting"`
	}
	err := e.call(ctx, http.MethodGet, "/v1/info", e.header(), "", decode(&info))
	if err == nil && info.Starting == nil {
		err = errGarbage
	}
	if err == nil && *info.Starting {
		err = errStarting
	}
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err, nil))
	}
	group, found, err := e.groupState(ctx)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err, nil))
	}
	if found {
		o.Values[signal.Running] = signal.Of(float64(group.Running), signal.Count, source, o.At)
		o.Values[signal.Queued] = signal.Of(float64(group.Queued), signal.Count, source, o.At)
		if group.Limit > 0 {
			o.Values[signal.Slots] = signal.Of(float64(group.Limit), signal.Count, source, o.At)
		}
	}
	if bytes, ok := e.memory(ctx); ok {
		o.Values[signal.MemoryUsedBytes] = signal.Of(bytes, signal.Bytes, source, o.At)
	}
	return o, nil
}

var errStarting = errors.New("the server is still starting")

// groupState asks for the resource group. A group exists once a query has been in it.
func (e *Engine) groupState(ctx context.Context) (g groupState, found bool, err error) {
	path := e.resourceGroup()
	if path == nil {
		return g, false, nil
	}
	parts := []string{"/v1/resourceGroupState"}
	for _, part := range path {
		parts = append(parts, url.PathEscape(part))
	}
	uri := strings.Join(parts, "/")
	err = e.call(ctx, http.MethodGet, uri, e.header(), "", decode(&g))
	if status, ok := errors.AsType[*statusError](err); ok && (status.status == http.StatusNotFound || status.status == http.StatusForbidden) {
		return g, false, nil
	}
	return g, err == nil, err
}

// memory is what all queries hold on all nodes. Clusters show it to administrators only, or to nobody.
func (e *Engine) memory(ctx context.Context) (float64, bool) {
	var bean struct {
		Attributes []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"attributes"`
	}
	if e.call(ctx, http.MethodGet, "/v1/jmx/mbean/trino.memory:name=ClusterMemoryManager", e.header(), "", decode(&bean)) != nil {
		return 0, false
	}
	for _, a := range bean.Attributes {
		if a.Name == "ClusterTotalMemoryReservation" {
			var bytes float64
			err := json.Unmarshal(a.Value, &bytes)
			return bytes, err == nil
		}
	}
	return 0, false
}
