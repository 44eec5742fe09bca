package chdb

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/supervise"
)

// Config says what kind of engine to start.
type Config struct {
	// Name is what the engine calls itself (hostname in logs, X-ClickHouse-Server-Display-Name).
	Name string
	// Addr is where it listens; with port 0 a free one is taken and kept over restarts. Default 127.0.0.1:0.
	Addr string
	// DataDir holds its tables, its spill files and its generated configuration. Required.
	DataDir string
	// LibPath is the engine's library; empty asks Ensure.
	LibPath string
	// User and Password are what clients must give. With neither set anyone may come, under any name.
	User, Password string
	// Settings are the defaults of every query, for example max_threads or max_bytes_before_external_sort.
	Settings map[string]string
	// Caps are settings that a query may lower but not raise: the value is the default, unless Settings
	// has a lower one, and the limit. A query that asks for more, or for 0, which often means no
	// limit, fails with code 452. Values are positive integers.
	Caps map[string]string
	// MaxConcurrent is how many queries may run at once; one more is refused with code 202. 0 is any
	// number. Pings, KILL QUERY and looks at system.processes are not counted.
	MaxConcurrent int
	// StartDelay is slept before the engine starts, to play a cluster that has to be woken up.
	StartDelay time.Duration
	// StopGrace is how long running queries may go on when the engine is stopped. Default 2 s.
	StopGrace time.Duration
	// StartTimeout bounds one start, without StartDelay. Default 60 s.
	StartTimeout time.Duration
	// OnChange is told when the engine starts, gets ready, crashes and stops. It must not block.
	OnChange func(supervise.Change)
	// Logger takes the events of the supervision and what the engine says. Required.
	Logger *slog.Logger
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *Config) setDefaults() error {
	var errs []error
	if c.Logger == nil {
		errs = append(errs, errors.New("no Logger"))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("no DataDir"))
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		errs = append(errs, fmt.Errorf("the Addr: %w", err))
	}
	if c.Name == "" {
		c.Name = "clickhouse"
	}
	if c.StopGrace == 0 {
		c.StopGrace = 2 * time.Second
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.MaxConcurrent < 0 || c.StartDelay < 0 {
		errs = append(errs, errors.New("negative MaxConcurrent or StartDelay"))
	}
	for _, settings := range []map[string]string{c.Settings, c.Caps} {
		for name := range settings {
			if !settingName.MatchString(name) {
				errs = append(errs, fmt.Errorf("%q is not the name of a setting", name))
			}
		}
	}
	for name, limit := range c.Caps {
		if !positiveInteger.MatchString(limit) {
			errs = append(errs, fmt.Errorf("the cap of %s must be a positive integer, not %q", name, limit))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("configuring engine %s: %w", c.Name, errors.Join(errs...))
	}
	var err error
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return fmt.Errorf("configuring engine %s: %w", c.Name, err)
	}
	return nil
}

var positiveInteger = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
