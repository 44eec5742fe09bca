package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/services/executor/line"
)

// cluster is a place to run attempts, with the line in front of it.
type cluster struct {
	cfg    EngineConfig
	engine engine.Engine
	line   *line.Line
	budget *retryBudget
}

func openEngine(cfg EngineConfig) (engine.Engine, error) {
	ch, err := cfg.clickhouse()
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", cfg.Name, err)
	}
	return clickhouse.Open(ch)
}

func newCluster(cfg EngineConfig, attempts AttemptConfig, e engine.Engine) *cluster {
	return &cluster{
		cfg: cfg, engine: e, line: line.New(max(cfg.Slots, 1)), budget: newRetryBudget(attempts.RetryShare, attempts.RetryReserve),
	}
}

// limits are those of a resource profile, with what it leaves out taken from the cluster's.
func (c EngineConfig) limits(resource string) Limits {
	l := c.Limits
	r, ok := c.Resources[resource]
	if !ok {
		return l
	}
	if r.MaxMemory > 0 {
		l.MaxMemory = r.MaxMemory
	}
	if r.MaxExecution > 0 {
		l.MaxExecution = r.MaxExecution
	}
	if len(r.Settings) > 0 {
		settings := maps.Clone(l.Settings)
		if settings == nil {
			settings = map[string]string{}
		}
		maps.Copy(settings, r.Settings)
		l.Settings = settings
	}
	return l
}

// clickhouse is the configuration of the adapter.
func (c EngineConfig) clickhouse() (clickhouse.Config, error) {
	scheme, hosts, ok := strings.Cut(strings.TrimSuffix(c.URL, "/"), "://")
	if !ok || hosts == "" {
		return clickhouse.Config{}, errors.New("must look like http://host:8123")
	}
	out := clickhouse.Config{
		Name: c.Name, Addrs: strings.Split(hosts, ","), User: c.User, Password: c.Password.Reveal(), Database: c.Database,
		// Queries that were let go keep their connections until they are over, and must not keep others waiting.
		Queries: 2*c.Slots + 4, Canary: c.Canary,
	}
	if len(out.Addrs) > 1 {
		return clickhouse.Config{}, clickhouse.ErrSeveralAddrs
	}
	for _, addr := range out.Addrs {
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return clickhouse.Config{}, fmt.Errorf("%q must be host:port, without a user and a path: %w", addr, err)
		}
	}
	switch scheme {
	case "http", "https":
		out.Protocol = clickhouse.HTTP
	case "clickhouse", "clickhouses":
		out.Protocol = clickhouse.Native
	default:
		return clickhouse.Config{}, fmt.Errorf("scheme %q is none of http, https, clickhouse, clickhouses", scheme)
	}
	if strings.HasSuffix(scheme, "s") {
		host, _, _ := net.SplitHostPort(out.Addrs[0])
		out.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	}
	return out, nil
}
