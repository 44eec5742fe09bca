package http2_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

// pipe is a connection that can go dead: nothing comes any more, and nobody says so.
type pipe struct {
	net.Conn
	dead atomic.Bool
	end  chan struct{}
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if p.dead.Load() {
		<-p.end
		return 0, net.ErrClosed
	}
	return n, err
}

func (p *pipe) Close() error {
	select {
	case <-p.end:
	default:
		close(p.end)
	}
	return p.Conn.Close()
}

// control is one at a server that answers after as long as it is asked to.
func control(t *testing.T) (c *http2.Control, pipes *[]*pipe, refused *bool) {
	t.Helper()
	listener := bufconn.Listen(64 << 10)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		var wait durationpb.Duration
		if err := s.RecvMsg(&wait); err != nil {
			return err
		}
		select {
		case <-time.After(wait.AsDuration()):
		case <-s.Context().Done():
			return s.Context().Err()
		}
		return s.SendMsg(&emptypb.Empty{})
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	pipes, refused = &[]*pipe{}, new(bool)
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		raw, err := listener.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		p := &pipe{Conn: raw, end: make(chan struct{})}
		*pipes = append(*pipes, p)
		if *refused {
			_ = p.Close()
			return nil, net.ErrClosed
		}
		return p, nil
	}
	c, err := http2.NewControl(insecure.NewCredentials(), func(creds credentials.TransportCredentials, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///server", append(opts, grpc.WithTransportCredentials(creds), grpc.WithContextDialer(dialer))...)
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, pipes, refused
}

func ask(t *testing.T, c *http2.Control, answerAfter, patience time.Duration) codes.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return status.Code(c.Invoke(ctx, "/a/B", durationpb.New(answerAfter), &emptypb.Empty{}))
}

func TestDeadConnectionIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, pipes, _ := control(t)
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
		require.Len(t, *pipes, 1)
		old := (*pipes)[0]
		old.dead.Store(true)
		require.Equal(t, codes.DeadlineExceeded, ask(t, c, 0, time.Second))
		require.Equal(t, codes.DeadlineExceeded, ask(t, c, 0, time.Second), "a short wait says nothing of the connection")
		require.Len(t, *pipes, 1)

		// A stream that is still read keeps the connection that was left.
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/a/B")
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(durationpb.New(time.Hour)))

		began := time.Now()
		require.Equal(t, codes.DeadlineExceeded, ask(t, c, 0, 3*time.Second))
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
		require.Len(t, *pipes, 2)
		require.True(t, c.Silent(began), "the other one answers, and not the one that what began then goes over")
		require.False(t, c.Silent(time.Now().Add(-time.Nanosecond)))
		synctest.Wait()
		require.False(t, ended(old), "somebody uses it")
		cancel()
		require.Error(t, stream.RecvMsg(&emptypb.Empty{}))
		synctest.Wait()
		require.True(t, ended(old), "nobody uses it any more")
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
		require.Len(t, *pipes, 2)
	})
}

// A server that takes its time for one call is not one that is gone.
func TestConnectionThatAnswersOthersIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, pipes, _ := control(t)
		slow := make(chan codes.Code)
		go func() { slow <- ask(t, c, time.Hour, 5*time.Second) }()
		time.Sleep(4 * time.Second)
		began := time.Now()
		require.True(t, c.Silent(began))
		time.Sleep(time.Millisecond)
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
		require.False(t, c.Silent(began))
		require.Equal(t, codes.DeadlineExceeded, <-slow)
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
		require.Len(t, *pipes, 1)
	})
}

func TestServerThatIsBackIsReachedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, refused := control(t)
		*refused = true
		for range 5 {
			require.Equal(t, codes.Unavailable, ask(t, c, 0, time.Second))
			time.Sleep(time.Second) // meanwhile it backs off for longer and longer
		}
		*refused = false
		require.Equal(t, codes.OK, ask(t, c, time.Millisecond, time.Second))
	})
}

func ended(p *pipe) bool {
	select {
	case <-p.end:
		return true
	default:
		return false
	}
}
