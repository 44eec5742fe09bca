package profiler

import (
	"fmt"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
)

// openers make clients of the kinds of engines that can be watched.
var openers = map[string]func(EngineConfig) (engine.Engine, error){
	clickhouse.Kind: func(c EngineConfig) (engine.Engine, error) {
		return clickhouse.Open(clickhouse.Config{
			Name: c.Name, Addrs: c.Addr, Protocol: c.Protocol, User: c.User, Password: c.Password.Reveal(), Database: c.Database,
			Canary: c.Canary, Queries: 1,
		})
	},
}

func openEngine(c EngineConfig) (engine.Engine, error) {
	open, known := openers[c.Kind]
	if !known {
		return nil, fmt.Errorf("engine %s: kind %q can't be watched", c.Name, c.Kind)
	}
	return open(c)
}
