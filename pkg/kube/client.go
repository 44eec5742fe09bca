package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// maxObjectBytes bounds what is read of an answer; etcd keeps no larger objects than 1.5 MiB by default.
const maxObjectBytes = 8 << 20

// Config says where the object is.
type Config struct {
	URL       string        `yaml:"url" doc:"base address of the API server, e.g. https://kubernetes.default.svc"`
	Namespace string        `yaml:"namespace" doc:"namespace of the custom resource"`
	Name      string        `yaml:"name" doc:"name of the custom resource"`
	TokenFile string        `yaml:"tokenFile" doc:"file with the bearer token; it is read again for every request, since tokens rotate"`
	CAFile    string        `yaml:"caFile" doc:"file with the certificates that the API server's is checked against; empty means those of the system"`
	Timeout   time.Duration `yaml:"timeout" doc:"most that one request may take"`
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		errs = append(errs, fmt.Errorf("url: %q is no http or https address", c.URL))
	case u.Scheme == "http" && c.TokenFile != "" && !isLoopback(u.Hostname()):
		errs = append(errs, errors.New("url: a token is not sent over plain http to another machine"))
	}
	if c.Namespace == "" || strings.ContainsAny(c.Namespace, "/?#") {
		errs = append(errs, errors.New("namespace: is missing or no name"))
	}
	if c.Name == "" || strings.ContainsAny(c.Name, "/?#") {
		errs = append(errs, errors.New("name: is missing or no name"))
	}
	return errors.Join(errs...)
}

// Client talks to one API server about one object. It may be used from several goroutines.
type Client struct {
	url       string
	tokenFile string
	http      *http.Client
	retryWait func(try int) time.Duration
}

// New makes a client; it does not connect.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the Kubernetes client: %w", err)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: cfg.Timeout}).DialContext,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the API server: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the certificates of the API server: %s holds none", cfg.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{
		url: strings.TrimSuffix(cfg.URL, "/") + apiPath + "/namespaces/" + url.PathEscape(cfg.Namespace) + "/" + plural + "/" +
			url.PathEscape(cfg.Name),
		tokenFile: cfg.TokenFile,
		http: &http.Client{
			Transport: transport, Timeout: cfg.Timeout,
			// A redirect would carry the token away.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		retryWait: jitter,
	}, nil
}

// Close gives idle connections back.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Get reads the object.
func (c *Client) Get(ctx context.Context) (Cluster, error) {
	data, err := c.do(ctx, http.MethodGet, "", nil)
	if err != nil {
		return Cluster{}, fmt.Errorf("reading the custom resource: %w", err)
	}
	return parse(data)
}

func (c *Client) do(ctx context.Context, method, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading the bearer token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxObjectBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(data) > maxObjectBytes {
		return nil, fmt.Errorf("the answer is over %d bytes", maxObjectBytes)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp.StatusCode, data)
	}
	return data, nil
}

// statusError reads a Kubernetes Status, or takes the code alone when a proxy has answered.
func statusError(code int, data []byte) error {
	e := &StatusError{Code: code}
	var status struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &status) == nil {
		e.Reason, e.Message = status.Reason, status.Message
	}
	if e.Reason == "" {
		e.Reason = http.StatusText(code)
	}
	return e
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
