package history

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/config"
)

// Protocol is how ClickHouse is spoken to.
type Protocol string

// The protocols.
const (
	HTTP   Protocol = "http"
	Native Protocol = "native"
)

// Config says where the history is. Fields that are left zero count as in DefaultConfig.
type Config struct {
	Addr     []string      `yaml:"addr" doc:"Servers, host:port; the first that answers is used."`
	Database string        `yaml:"database" doc:"Database that holds the tables."`
	User     string        `yaml:"user" doc:"User name."`
	Password config.Secret `yaml:"password" doc:"Password of the user."`
	Protocol Protocol      `yaml:"protocol" doc:"http or native."`
	TLS      TLS           `yaml:"tls"`
	Compress bool          `yaml:"compress" doc:"Send and take LZ4 blocks: of use over a network, a waste on one machine."`

	DialTimeout   time.Duration `yaml:"dialTimeout" doc:"Longest start of a connection."`
	InsertTimeout time.Duration `yaml:"insertTimeout" doc:"Longest insert."`
	ReadTimeout   time.Duration `yaml:"readTimeout" doc:"Longest wait for bytes of an answer."`
	MaxOpenConns  int           `yaml:"maxOpenConns" doc:"Most connections at once."`
	Cluster       string        `yaml:"cluster" doc:"ClickHouse cluster whose replicas hold the tables; empty for a single node."`
}

// TLS says how the connection is secured.
type TLS struct {
	Enabled    bool   `yaml:"enabled" doc:"Encrypt the connection."`
	CAFile     string `yaml:"caFile" doc:"Certificates to trust; empty trusts the system's."`
	ServerName string `yaml:"serverName" doc:"Name the server's certificate has to carry, if not the one dialled."`
}

// DefaultConfig is the embedded history's.
func DefaultConfig() Config {
	return Config{
		Addr: []string{"127.0.0.1:8123"}, Database: "pointsman", User: "default", Protocol: HTTP,
		DialTimeout: 5 * time.Second, InsertTimeout: time.Minute, ReadTimeout: time.Minute, MaxOpenConns: 8,
	}
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	for _, addr := range c.Addr {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, config.Invalid("addr", "%q is no host:port", addr))
		}
	}
	for key, name := range map[string]string{"database": c.Database, "cluster": c.Cluster} {
		if name != "" && !names.MatchString(name) {
			errs = append(errs, config.Invalid(key, "%q can't be the name of a database or cluster", name))
		}
	}
	if c.Protocol != "" && c.Protocol != HTTP && c.Protocol != Native {
		errs = append(errs, config.Invalid("protocol", "%q is neither http nor native", c.Protocol))
	}
	for key, d := range map[string]time.Duration{"dialTimeout": c.DialTimeout, "insertTimeout": c.InsertTimeout, "readTimeout": c.ReadTimeout} {
		if d < 0 {
			errs = append(errs, config.Invalid(key, "%s is negative", d))
		}
	}
	if c.MaxOpenConns < 0 {
		errs = append(errs, config.Invalid("maxOpenConns", "%d is negative", c.MaxOpenConns))
	}
	return errors.Join(errs...)
}

// names are those that need no quoting: they go into statements that take no parameters.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WithDefaults fills in what was left zero.
func (c Config) WithDefaults() Config {
	def := DefaultConfig()
	if len(c.Addr) == 0 {
		c.Addr = def.Addr
	}
	c.Database = cmp.Or(c.Database, def.Database)
	c.User = cmp.Or(c.User, def.User)
	c.Protocol = cmp.Or(c.Protocol, def.Protocol)
	c.DialTimeout = cmp.Or(c.DialTimeout, def.DialTimeout)
	c.InsertTimeout = cmp.Or(c.InsertTimeout, def.InsertTimeout)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, def.ReadTimeout)
	c.MaxOpenConns = cmp.Or(c.MaxOpenConns, def.MaxOpenConns)
	return c
}

// Options are the driver's options for the configured history, without a database when the database may not exist yet.
func (c Config) Options(withDatabase bool) (*clickhouse.Options, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	o := &clickhouse.Options{
		Addr:         c.Addr,
		Auth:         clickhouse.Auth{Username: c.User, Password: c.Password.Reveal()},
		DialTimeout:  c.DialTimeout,
		ReadTimeout:  c.ReadTimeout,
		MaxOpenConns: c.MaxOpenConns,
		MaxIdleConns: c.MaxOpenConns,
	}
	if withDatabase {
		o.Auth.Database = c.Database
	}
	o.Protocol = clickhouse.HTTP
	if c.Protocol == Native {
		o.Protocol = clickhouse.Native
	}
	if c.Compress {
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	if c.TLS.Enabled {
		conf, err := c.TLS.config()
		if err != nil {
			return nil, err
		}
		o.TLS = conf
	}
	return o, nil
}

func (t TLS) config() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the history's authority: %w", err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the history's authority: %s holds no PEM certificate", t.CAFile)
	}
	return conf, nil
}
