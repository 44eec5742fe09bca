package profiler

import (
	"cmp"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
)

// client is the configuration of the engine's client, which only watches.
func (c EngineConfig) client() engines.Config {
	return engines.Config{
		Name: c.Name, Kind: c.Kind, Flavour: c.Flavour, URL: c.url(), User: c.User, Password: c.Password.Reveal(), Database: c.Database,
		Group: c.Group, Canary: c.Canary,
	}
}

// url is where the engine is: addr and protocol are how it was said before there was more than one kind.
func (c EngineConfig) url() string {
	if c.URL != "" || len(c.Addr) == 0 {
		return c.URL
	}
	scheme := cmp.Or(c.Protocol, "http")
	if scheme == "native" {
		scheme = "clickhouse"
	}
	return scheme + "://" + strings.Join(c.Addr, ",")
}

func openEngine(c EngineConfig) (engine.Engine, error) { return engines.Open(c.client()) }
