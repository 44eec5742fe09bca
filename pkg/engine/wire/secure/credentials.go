package secure

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Credentials are gRPC's, for TLS or, without a configuration, for plain text. They explain what goes wrong.
func Credentials(cfg *tls.Config, ca string) *Handshakes {
	h := &Handshakes{ca: ca, TransportCredentials: insecure.NewCredentials(), failed: &atomic.Pointer[error]{}}
	if cfg != nil {
		h.TransportCredentials = credentials.NewTLS(cfg.Clone())
		h.secure = true
	}
	return h
}

// Handshakes are credentials that keep the last error: gRPC has it as text only.
type Handshakes struct {
	credentials.TransportCredentials
	ca     string
	secure bool
	failed *atomic.Pointer[error]
}

// ClientHandshake makes a connection secure, or watches one that is not.
func (h *Handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if !h.secure {
		raw = &noting{plain: plain{Conn: raw}, failed: h.failed}
	}
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	err = Explain(err, h.ca)
	if err != nil || h.secure {
		h.failed.Store(&err)
	}
	return conn, info, err
}

// Clone copies them. All copies keep one last error.
func (h *Handshakes) Clone() credentials.TransportCredentials {
	c := *h
	c.TransportCredentials = h.TransportCredentials.Clone()
	return &c
}

// Failed is what the last connection failed of, if client and server did not agree on TLS; nil otherwise.
func (h *Handshakes) Failed() error {
	if err := h.failed.Load(); err != nil && Failed(*err) {
		return *err
	}
	return nil
}

// noting is a plain connection that keeps what its first answer came to.
type noting struct {
	plain
	failed *atomic.Pointer[error]
}

// Read reads, and keeps the error of a first answer.
func (c *noting) Read(p []byte) (int, error) {
	first := !c.heard.Load()
	n, err := c.plain.Read(p)
	if first {
		c.failed.Store(&err)
	}
	return n, err
}
