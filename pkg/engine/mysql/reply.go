package mysql

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

var errColumns = errors.New("the server announces more columns than a result can have")

// replyConn looks at the head of the answer to a statement. The driver makes room for as many columns as the server announces,
// before one of them is there: a server that lies would take all the memory of this process. Counts of more than two bytes, past
// 65,535 columns, are refused; no server of the family makes tables half as wide. Over TLS there is nothing to be seen here.
type replyConn struct {
	net.Conn
	armed   atomic.Bool
	head    []byte
	refused atomic.Bool
	hungUp  atomic.Bool // the server has closed the connection, as opposed to a network that broke
}

// The head of a packet: three bytes of length, one of sequence, and the first of what it holds.
const (
	headSize   = 5
	threeBytes = 0xfd
	eightBytes = 0xfe
)

// expect looks at the next answer.
func (c *replyConn) expect() {
	c.head = c.head[:0]
	c.armed.Store(true)
}

// Read reads, and refuses an answer whose head says too much.
func (c *replyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		c.hungUp.Store(true)
	}
	if !c.armed.Load() {
		return n, err
	}
	c.head = append(c.head, p[:min(n, headSize-len(c.head))]...)
	if len(c.head) < headSize {
		return n, err
	}
	c.armed.Store(false)
	if first := c.head[headSize-1]; first == threeBytes || first == eightBytes {
		c.refused.Store(true)
		_ = c.Close()
		return 0, errColumns
	}
	return n, err
}
