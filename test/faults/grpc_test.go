package faults_test

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calls finds submissions in the messages of gRPC that a client sends. One message has a statement and its attempt in any order, and
// may come in pieces, with those of other calls in between.
type calls struct {
	begun  bool
	bytes  []byte
	bodies map[uint32][]byte // of requests, by stream, from behind the last whole message on
}

const (
	http2Preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frameHeader  = 9
	dataFrame    = 0
	endOfStream  = 1
	prefix       = 5 // of a message: whether it is compressed, and its length
)

func newCalls() requests { return &calls{bodies: map[uint32][]byte{}} }

func (c *calls) read(p []byte) (out []statement) {
	c.bytes = append(c.bytes, p...)
	if !c.begun {
		if len(c.bytes) < http2Preface {
			return nil
		}
		c.begun, c.bytes = true, c.bytes[http2Preface:]
	}
	for len(c.bytes) >= frameHeader {
		size := frameHeader + int(binary.BigEndian.Uint32(c.bytes)>>8)
		if len(c.bytes) < size {
			break
		}
		kind, flags, stream := c.bytes[3], c.bytes[4], binary.BigEndian.Uint32(c.bytes[5:])
		if kind == dataFrame {
			c.bodies[stream] = append(c.bodies[stream], c.bytes[frameHeader:size]...)
			out = append(out, c.whole(stream)...)
			if flags&endOfStream != 0 {
				delete(c.bodies, stream)
			}
		}
		c.bytes = c.bytes[size:]
	}
	return out
}

// whole takes the whole messages off a stream.
func (c *calls) whole(stream uint32) (out []statement) {
	for {
		body := c.bodies[stream]
		if len(body) < prefix || len(body) < prefix+int(binary.BigEndian.Uint32(body[1:])) {
			return out
		}
		size := prefix + int(binary.BigEndian.Uint32(body[1:]))
		if s, ok := submission(string(body[prefix:size])); ok {
			out = append(out, s)
		}
		c.bodies[stream] = body[size:]
	}
}

var (
	named  = regexp.MustCompile(`(f\d{6})/\d+`)
	marked = regexp.MustCompile(`mark_(f\d{6})_`)
)

// submission reads one message. Flight SQL asks for rows by a ticket, and its cancels quote the statement.
func submission(message string) (statement, bool) {
	if strings.Contains(message, "TicketStatementQuery") {
		return statement{fetch: true}, true
	}
	m := marked.FindStringSubmatch(message)
	if m == nil || strings.Contains(message, "CancelFlightInfo") {
		return statement{}, false
	}
	s := statement{task: m[1]}
	for _, n := range named.FindAllStringSubmatch(message, -1) {
		if n[1] == s.task {
			s.attempt = n[0]
		}
	}
	return s, true
}

func TestSubmissionsAreFoundInCalls(t *testing.T) {
	frame := func(kind, flags, stream byte, body string) string {
		n := len(body)
		return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}) + body
	}
	message := func(text string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))) + text
	}
	one, two := message("SELECT 1 /* mark_f000001_ */ and f000001/2"), message("f000002/1 SELECT 2 /* mark_f000002_ */")
	text := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") + frame(1, 4, 1, "headers /* mark_f000009_ */") +
		frame(0, 0, 1, one[:20]) + frame(0, 1, 3, two+message("nothing")) + frame(8, 0, 0, "more") + frame(0, 1, 1, one[20:]) +
		frame(0, 1, 5, message("TicketStatementQuery 7")) + frame(0, 1, 7, message("CancelFlightInfo SELECT 2 /* mark_f000002_ */ f000002/1"))
	want := []statement{{task: "f000002", attempt: "f000002/1"}, {task: "f000001", attempt: "f000001/2"}, {fetch: true}}
	for _, piece := range []int{1, 7, 1 << 10} {
		c := newCalls()
		var got []statement
		for in := bytes.NewBufferString(text); in.Len() > 0; {
			got = append(got, c.read(in.Next(piece))...)
		}
		require.Equal(t, want, got, "in pieces of %d bytes", piece)
	}
}
