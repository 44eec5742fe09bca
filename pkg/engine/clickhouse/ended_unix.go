//go:build unix

package clickhouse

import (
	"net"
	"syscall"
)

// ended says that the other side has closed a connection, so that what is written to it is lost. It looks and takes nothing.
func ended(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		over = n == 0 && err == nil
	})
	return err == nil && over
}
