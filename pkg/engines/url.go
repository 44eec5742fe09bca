package engines

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// place is where a server is.
type place struct {
	scheme string
	addr   string // host:port
	host   string
	params url.Values
}

// ErrSeveralHosts refuses what no look-up could be believed of.
var ErrSeveralHosts = errors.New("more than one address: name each host as an engine of its own, since a query can be looked up and killed only on the server that runs it")

// parse reads a URL. Its errors never quote it: somebody may have put a password there.
func parse(text string, schemes ...string) (place, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || rest == "" {
		return place{}, fmt.Errorf("must look like %s://host:port", schemes[0])
	}
	if !slices.Contains(schemes, scheme) {
		return place{}, fmt.Errorf("scheme %q is none of %s", scheme, strings.Join(schemes, ", "))
	}
	hosts, query, _ := strings.Cut(rest, "?")
	hosts = strings.TrimSuffix(hosts, "/")
	switch {
	case strings.Contains(hosts, "@"):
		return place{}, errors.New("must be without a user: user and password have keys of their own")
	case strings.Contains(hosts, "/"):
		return place{}, errors.New("must be without a path: the database has a key of its own")
	case strings.Contains(hosts, ","):
		return place{}, ErrSeveralHosts
	}
	host, port, err := net.SplitHostPort(hosts)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" {
		return place{}, fmt.Errorf("%q must be host:port", hosts)
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return place{}, errors.New("its parameters can't be read")
	}
	return place{scheme: scheme, addr: hosts, host: host, params: params}, nil
}

// only refuses parameters that nobody would look at.
func (p place) only(names ...string) error {
	for name := range p.params {
		if !slices.Contains(names, name) {
			return fmt.Errorf("parameter %q is not known", name)
		}
	}
	return nil
}

// caParam names the file with the certificates of the authorities that a server's own is checked against, in place of the system's.
const caParam = "ca"

// tls is what a connection with TLS needs.
func (p place) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.host}
	file := p.params.Get(caParam)
	if file == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: %s holds no certificate in PEM", file)
	}
	return cfg, nil
}

var errIdleCA = errors.New("a ca is given, but the connection is to be without TLS, or is not to be checked")

// tlsFor is the same for a URL whose scheme says whether there is TLS; nil is plain text.
func (p place) tlsFor(secure bool) (*tls.Config, error) {
	if secure {
		return p.tls()
	}
	if p.params.Has(caParam) {
		return nil, errIdleCA
	}
	return nil, nil
}

// tlsMode is the same for a URL whose parameter tls says it.
func (p place) tlsMode() (*tls.Config, error) {
	switch mode := cmp.Or(p.params.Get("tls"), "false"); mode {
	case "false", "true":
		return p.tlsFor(mode == "true")
	case "skip-verify":
		if p.params.Has(caParam) {
			return nil, errIdleCA
		}
		cfg, err := p.tls()
		if err == nil {
			cfg.InsecureSkipVerify = true
		}
		return cfg, err
	default:
		return nil, fmt.Errorf("tls %q is none of true, skip-verify, false", mode)
	}
}
