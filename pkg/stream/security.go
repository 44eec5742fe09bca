package stream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	saslPlain    = "PLAIN"
	saslScram256 = "SCRAM-SHA-256"
	saslScram512 = "SCRAM-SHA-512"
)

func (c Config) securityOpts() []kgo.Opt {
	var opts []kgo.Opt
	s := c.SASL
	switch s.Mechanism {
	case saslPlain:
		opts = append(opts, kgo.SASL(plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := s.password()
			return plain.Auth{User: s.User, Pass: pass}, err
		})))
	case saslScram256, saslScram512:
		auth := func(context.Context) (scram.Auth, error) {
			pass, err := s.password()
			return scram.Auth{User: s.User, Pass: pass}, err
		}
		if s.Mechanism == saslScram256 {
			opts = append(opts, kgo.SASL(scram.Sha256(auth)))
		} else {
			opts = append(opts, kgo.SASL(scram.Sha512(auth)))
		}
	}
	return opts
}

// password is read for each connection, so that a rotated one is picked up without a restart.
func (s SASL) password() (string, error) {
	if s.PasswordFile == "" {
		return s.Password.Reveal(), nil
	}
	b, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("reading the broker password: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

func (t TLS) load() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the broker's certificate authority: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the broker's certificate authority: no certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	return conf, nil
}
