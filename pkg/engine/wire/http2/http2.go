// Package http2 is what adapters of engines behind gRPC share: it sees in the bytes that a client writes when a request's body
// leaves, so that a guard can hold it back, and it keeps a connection for looking up and stopping that is left when it is dead.
package http2

import (
	"context"
	"encoding/binary"
	"net"

	"google.golang.org/grpc/credentials"
)

// Frames follows the frames of HTTP/2 that a client writes on one connection.
type Frames struct {
	begun  bool
	skip   int    // bytes of the current frame, or of the preface, that are still to come
	header []byte // of the next one, as far as it is there
}

const (
	preface     = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	headerBytes = 9
	dataFrame   = 0
	endStream   = 1
)

// Next takes the bytes that are written next. It says whether they have the header of a frame with a part of a request's body, and
// of one with its end: a server starts nothing before it has those.
func (f *Frames) Next(p []byte) (body, end bool) {
	if !f.begun {
		f.begun, f.skip = true, preface
	}
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := min(headerBytes-len(f.header), len(p))
		f.header = append(f.header, p[:n]...)
		p = p[n:]
		if len(f.header) < headerBytes {
			break
		}
		f.skip = int(binary.BigEndian.Uint32(f.header) >> 8)
		if f.header[3] == dataFrame {
			body, end = true, end || f.header[4]&endStream != 0
		}
		f.header = f.header[:0]
	}
	return body, end
}

// Above returns credentials whose connections are wrapped above the encryption, where frames can be read.
func Above(c credentials.TransportCredentials, wrap func(net.Conn) net.Conn) credentials.TransportCredentials {
	return above{c, wrap}
}

type above struct {
	credentials.TransportCredentials
	wrap func(net.Conn) net.Conn
}

// ClientHandshake makes a connection and wraps it.
func (a above) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := a.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return a.wrap(conn), info, nil
}

// Clone copies the credentials; what wraps stays the same.
func (a above) Clone() credentials.TransportCredentials {
	return above{a.TransportCredentials.Clone(), a.wrap}
}
