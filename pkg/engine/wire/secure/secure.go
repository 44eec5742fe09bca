// Package secure says what it means when a client and a server don't agree on TLS, and what to do about it: the libraries' words
// name neither the engine's URL nor what has to be changed in it.
//
// Whether a connection is encrypted, and whom it trusts, is for the configuration to say; nothing is decided here.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
)

// Error is a connection on which nothing was said because client and server don't agree on TLS.
type Error struct {
	says string
	err  error
}

// Error gives what it means, what to do, and the library's own words.
func (e *Error) Error() string {
	if e.err == nil {
		return e.says
	}
	return e.says + " (" + e.err.Error() + ")"
}

// Unwrap gives the library's error.
func (e *Error) Unwrap() error { return e.err }

// Failed says that an error is one of TLS: nothing of what was to be said has left.
func Failed(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

const (
	plainServer = "the server does not speak TLS at this port: name the port where it does, or take TLS out of the engine's URL"
	tlsServer   = "the server speaks TLS at this port: say so in the engine's URL, or name its port for plain text"
)

// NoTLS is the error of a server that says by its own protocol that it has no TLS.
func NoTLS(err error) *Error { return &Error{says: plainServer, err: err} }

// Explain makes an error of a handshake say what it means. Other errors stay as they are. ca is the URL's parameter for a file with
// certificates of authorities.
func Explain(err error, ca string) error {
	if err == nil || Failed(err) {
		return err
	}
	if says := meaning(err, ca); says != "" {
		return &Error{says: says, err: err}
	}
	return err
}

func meaning(err error, ca string) string {
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		by := ""
		if unknown.Cert != nil && unknown.Cert.Issuer.CommonName != "" {
			by = fmt.Sprintf(" (%q)", unknown.Cert.Issuer.CommonName)
		}
		return "the server's certificate is signed by an authority" + by + " that is not trusted here: name the file with that authority's certificate as " + ca + "=… in the engine's URL"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is not for " + wrong.Host + namesOf(wrong.Certificate) + ": use one of its names in the engine's URL, or give the server a certificate with this one"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "the server's certificate has expired, or is not valid yet: renew it, or correct the clocks"
		}
		return "the server's certificate can't be used: give the server another one"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return plainServer
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "the server ends the TLS handshake: it may want a certificate of the client, which engines don't send, or another version of TLS"
	}
	return ""
}

func namesOf(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return ", and names no host at all"
	case len(names) > 5:
		names = append(names[:5], "…")
	}
	return " but for " + strings.Join(names, ", ")
}

// Plain watches the first answer on a connection without TLS: a server that wants TLS sends an alert, or hangs up.
func Plain(c net.Conn) net.Conn { return &plain{Conn: c} }

type plain struct {
	net.Conn
	heard   atomic.Bool
	written atomic.Bool
}

// The head of an alert: its type, and the version of the protocol.
const (
	alert      = 0x15
	alertMajor = 0x03
)

// Read reads, and explains a first answer that is none.
func (c *plain) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.heard.Load() {
		return n, err
	}
	switch {
	case n > 0:
		c.heard.Store(true)
		if p[0] == alert && (n == 1 || p[1] == alertMajor) {
			return 0, &Error{says: tlsServer}
		}
	case c.written.Load() && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return n, fmt.Errorf("the server hung up without a word, as one does that wants TLS: %w", err)
	}
	return n, err
}

// SyscallConn is that of the connection below, for who looks whether it has ended.
func (c *plain) SyscallConn() (syscall.RawConn, error) {
	below, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return below.SyscallConn()
}

// Write sends.
func (c *plain) Write(p []byte) (int, error) {
	c.written.Store(true)
	return c.Conn.Write(p)
}
