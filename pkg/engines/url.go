package engines

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
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

func (p place) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.host}
}

// tlsMode reads the parameter tls; nil is plain text.
func (p place) tlsMode() (*tls.Config, error) {
	switch mode := cmp.Or(p.params.Get("tls"), "false"); mode {
	case "false":
		return nil, nil
	case "true":
		return p.tls(), nil
	case "skip-verify":
		cfg := p.tls()
		cfg.InsecureSkipVerify = true
		return cfg, nil
	default:
		return nil, fmt.Errorf("tls %q is none of true, skip-verify, false", mode)
	}
}
