package stream_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

func TestTLSAndSASL(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))

	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			b := streamtest.Start(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "me", "s3cret"),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
			b.Config.TLS = stream.TLS{Enabled: true, CAFile: ca}
			b.Config.SASL = stream.SASL{Mechanism: mechanism, User: "me", PasswordFile: password}
			require.NoError(t, producer(t, b).Ping(t.Context()))
			for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
				cfg := b.Config
				cfg.SASL.Password = "s3cret"
				require.NotContains(t, fmt.Sprintf(verb, cfg), "s3cret")
			}
		})
	}
}
