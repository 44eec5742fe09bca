// Package authority is a certificate authority of a test's own, and servers that speak TLS in front of others that don't.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates.
type Authority struct {
	// File has its own certificate, which a client is to trust.
	File string

	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	folder string
	serial int64
}

// New makes an authority that nobody has heard of.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{folder: t.TempDir(), serial: 1}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the test's own authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.File = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.folder, name)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

// Certificate signs one for hosts, names or addresses, that is valid until then.
func (a *Authority) Certificate(t testing.TB, until time.Time, hosts ...string) tls.Certificate {
	t.Helper()
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "a server of a test"},
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Files writes a certificate and its key, as servers read them, into a folder.
func Files(t testing.TB, c tls.Certificate, folder string) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	a := &Authority{folder: folder}
	return a.write(t, "server.pem", "CERTIFICATE", c.Certificate[0]), a.write(t, "server.key", "PRIVATE KEY", der)
}

// Front listens with TLS and passes what comes on to a server without it, and back. It gives its address.
func Front(t testing.TB, c tls.Certificate, backend string, protocols ...string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c}, NextProtos: protocols})
	require.NoError(t, err)
	var group sync.WaitGroup
	var open sync.Map
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		group.Wait()
	})
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(client, true)
			group.Go(func() {
				defer open.Delete(client)
				pass(client, backend)
			})
		}
	})
	return l.Addr().String()
}

// pass carries bytes both ways until one of the two hangs up.
func pass(client net.Conn, backend string) {
	defer client.Close()
	if err := client.(*tls.Conn).Handshake(); err != nil {
		return
	}
	server, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // a client that is gone wants nothing more
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	both.Wait()
	_ = server.Close()
}
