package stream

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/pointsman/pointsman/pkg/config"
)

// Config says which Kafka, and who we are there.
type Config struct {
	Brokers  []string `yaml:"brokers" doc:"addresses to find the cluster by, host:port"`
	Prefix   string   `yaml:"prefix" doc:"put before every topic and group name, for several installations on one cluster"`
	ClientID string   `yaml:"clientId" doc:"name of this process in the broker's logs and quotas"`
	// Compression is what we write with; every reader reads all of them.
	Compression string `yaml:"compression" doc:"none, snappy, lz4 or zstd"`

	TLS  TLS  `yaml:"tls"`
	SASL SASL `yaml:"sasl"`
}

// TLS says how the connection is secured.
type TLS struct {
	Enabled    bool   `yaml:"enabled" doc:"encrypt the connection"`
	CAFile     string `yaml:"caFile" doc:"certificates to trust; empty trusts the system's"`
	CertFile   string `yaml:"certFile" doc:"own certificate, for brokers that ask for one"`
	KeyFile    string `yaml:"keyFile" doc:"key of the own certificate"`
	ServerName string `yaml:"serverName" doc:"name the broker's certificate has to carry, if not the one dialled"`
}

// SASL says who we are.
type SASL struct {
	Mechanism    string        `yaml:"mechanism" doc:"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty for none"`
	User         string        `yaml:"user" doc:"user name"`
	Password     config.Secret `yaml:"password" doc:"password; better kept in a file"`
	PasswordFile string        `yaml:"passwordFile" doc:"file that holds the password; read again for each connection"`
}

// DefaultConfig is the embedded broker's.
func DefaultConfig() Config {
	return Config{Brokers: []string{"127.0.0.1:9092"}, ClientID: "pointsman", Compression: "snappy"}
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: none given"))
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			errs = append(errs, fmt.Errorf("brokers: %q: want host:port", b))
		}
	}
	if strings.ContainsFunc(c.Prefix, func(r rune) bool { return !topicRune(r) }) {
		errs = append(errs, fmt.Errorf("prefix %q: only letters, digits, '.', '_' and '-' can be in a topic name", c.Prefix))
	}
	if _, err := c.codec(); err != nil {
		errs = append(errs, err)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		errs = append(errs, errors.New("tls: certFile and keyFile go together"))
	}
	switch c.SASL.Mechanism {
	case "":
	case saslPlain, saslScram256, saslScram512:
		if c.SASL.User == "" {
			errs = append(errs, errors.New("sasl: no user"))
		}
		if c.SASL.Password == "" && c.SASL.PasswordFile == "" {
			errs = append(errs, errors.New("sasl: no password"))
		}
	default:
		errs = append(errs, fmt.Errorf("sasl: mechanism %q is not known", c.SASL.Mechanism))
	}
	return errors.Join(errs...)
}

func topicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
}

// Topic returns the name of a topic on the cluster.
func (c Config) Topic(name string) string { return c.Prefix + name }

// Group returns the name of a consumer group on the cluster.
func (c Config) Group(name string) string { return c.Prefix + name }

// Name takes the prefix off a topic's name on the cluster.
func (c Config) Name(topic string) string { return strings.TrimPrefix(topic, c.Prefix) }
