package ports_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/ports"
)

func TestNoPortTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		port := ports.Free(t)
		require.False(t, seen[port], "%d is given twice", port)
		seen[port] = true
	}
	port := ports.Free(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	if err == nil {
		defer l.Close()
	}
	require.NotEqual(t, port+1, ports.Free(t), "somebody listens there")
}

func TestClosed(t *testing.T) {
	_, err := net.Dial("tcp", ports.Closed(t))
	require.Error(t, err)
}
