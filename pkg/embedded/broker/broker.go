package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrInUse is wrapped by Start's error if somebody else has the port or the data directory.
var ErrInUse = errors.New("in use")

// Segments are what is freed at once: a segment goes when its last record is past the bounds. Small ones keep memory close to the
// bound, large ones keep the number of files low.
const (
	memorySegment = 1 << 20
	diskSegment   = 16 << 20
)

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File
	sweep   sync.WaitGroup
	cancel  context.CancelFunc
	stop    sync.Once
	stopErr error
}

// Start listens and serves until Stop. The context bounds only the start.
func Start(ctx context.Context, cfg Config, log *slog.Logger) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	host, port, _ := cfg.hostPort()
	b := &Broker{}
	opts := []kfake.Opt{
		kfake.Ports(port),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			return net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
		}),
		kfake.ClusterID("pointsman-embedded"),
		kfake.DefaultNumPartitions(1),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
		kfake.WithLogger(logger{log}),
	}
	segment := memorySegment
	if cfg.DataDir != "" {
		if err := b.lockDir(cfg.DataDir); err != nil {
			return nil, err
		}
		segment = diskSegment
		opts = append(opts, kfake.DataDir(filepath.Join(cfg.DataDir, "kafka")))
		if cfg.SyncWrites {
			opts = append(opts, kfake.SyncWrites())
		}
	}
	opts = append(opts, kfake.BrokerConfigs(map[string]string{
		"log.segment.bytes": strconv.Itoa(segment),
		"log.retention.ms":  strconv.FormatInt(cfg.Retention.Milliseconds(), 10),
		"message.max.bytes": strconv.Itoa(16 << 20),
	}))
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		err = errors.Join(err, b.unlock())
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("embedded broker: port %d is %w; pass --kafka-addr or --free-ports, or stop the other process", port, ErrInUse)
		}
		return nil, fmt.Errorf("embedded broker: starting on %s: %w", cfg.Addr, err)
	}
	b.cluster = cluster
	sessions := watchSessions(cluster)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ClientID("pointsman-embedded"))
	if err != nil {
		cluster.Close()
		return nil, fmt.Errorf("embedded broker: %w", errors.Join(err, b.unlock()))
	}
	var sweepCtx context.Context
	sweepCtx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.sweep.Go(func() { sessions.run(sweepCtx, client, log) })
	b.sweep.Go(func() { b.enforce(sweepCtx, cfg, kadm.NewClient(client), log) })
	return b, nil
}

// Addrs returns where clients connect to.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Stop closes the port, writes what has to be kept, and gives the data directory free. It may be called more than once.
func (b *Broker) Stop(context.Context) error {
	b.stop.Do(func() {
		b.cancel()
		b.sweep.Wait() // the cluster must not be asked anything once it is closed
		b.cluster.Close()
		b.stopErr = b.unlock()
	})
	return b.stopErr
}

func (b *Broker) lockDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("embedded broker: making the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "kafka.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("embedded broker: locking the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("embedded broker: data directory %s is %w by another process", dir, ErrInUse)
		}
		return fmt.Errorf("embedded broker: locking %s: %w", dir, err)
	}
	b.lock = f
	return nil
}

func (b *Broker) unlock() error {
	if b.lock == nil {
		return nil
	}
	if err := b.lock.Close(); err != nil {
		return fmt.Errorf("embedded broker: giving the data directory free: %w", err)
	}
	return nil
}

// logger hands kfake's messages on. Its info level tells of every request, so it counts as debug here.
type logger struct{ log *slog.Logger }

// Logf implements kfake.Logger.
func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		to = slog.LevelError
	case kfake.LogLevelWarn:
		to = slog.LevelWarn
	case kfake.LogLevelNone, kfake.LogLevelInfo, kfake.LogLevelDebug:
	}
	if l.log != nil && l.log.Enabled(context.Background(), to) {
		l.log.Log(context.Background(), to, "embedded broker", "message", fmt.Sprintf(format, args...))
	}
}
