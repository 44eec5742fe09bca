package broker

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Config says where the broker listens and how much it keeps.
type Config struct {
	Addr       string `yaml:"addr" doc:"address that clients use; port 0 takes a free one"`
	DataDir    string `yaml:"dataDir" doc:"folder for topics and offsets; empty keeps them in memory"`
	SyncWrites bool   `yaml:"syncWrites" doc:"fsync every write, so that not even a crash of the machine loses one"`

	MaxBytes  int64         `yaml:"maxBytes" doc:"bound on the records kept in all topics together, oldest of the largest go first"`
	Retention time.Duration `yaml:"retention" doc:"how long records are kept in topics that do not say"`
	Sweep     time.Duration `yaml:"sweep" doc:"how often the bounds are enforced; what arrives in between comes on top"`
}

// Default returns the settings of `pointsman up`: memory only, at most 512 MiB of records.
func Default() Config {
	return Config{
		Addr:      "127.0.0.1:9092",
		MaxBytes:  512 << 20,
		Retention: 7 * 24 * time.Hour,
		Sweep:     10 * time.Second,
	}
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := c.hostPort(); err != nil {
		errs = append(errs, err)
	}
	if c.MaxBytes < 1<<20 {
		errs = append(errs, fmt.Errorf("maxBytes %d is below 1 MiB", c.MaxBytes))
	}
	if c.Retention <= 0 {
		errs = append(errs, errors.New("retention must be positive"))
	}
	if c.Sweep <= 0 {
		errs = append(errs, errors.New("sweep must be positive"))
	}
	return errors.Join(errs...)
}

// hostPort takes the address apart. The host is also what clients are told to come back to, so it can't be "any".
func (c Config) hostPort() (string, int, error) {
	host, text, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return "", 0, fmt.Errorf("addr %q: want host:port", c.Addr)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("addr %q: no such port", c.Addr)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return "", 0, fmt.Errorf("addr %q: name the address that clients will use, the broker sends them back to it", c.Addr)
	}
	return host, port, nil
}
