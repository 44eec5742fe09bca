package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNoData is wrapped by OpenCopy's error if a folder holds no broker's data.
var ErrNoData = errors.New("no embedded broker has kept anything there")

// Copy is a broker on a copy of another one's data directory.
type Copy struct {
	*Broker
	dir string
}

// stateFiles are what a broker needs to find its topics again. Its groups and producers are not wanted.
var stateFiles = []string{"meta.json", "topics.json", "broker_configs.json"}

// OpenCopy serves a copy of some topics of a data directory, for reading: the directory itself is not changed, not even by what a
// start would repair or delete for its age. It fails with ErrInUse while a broker runs on the directory, and keeps one from
// starting while it copies.
func OpenCopy(ctx context.Context, dataDir string, topics []string, log *slog.Logger) (_ *Copy, err error) {
	from := filepath.Join(dataDir, "kafka")
	lock, err := shareDir(dataDir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(from, stateFiles[0])); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNoData
		}
		return nil, errors.Join(fmt.Errorf("embedded broker: %s: %w", dataDir, err), lock())
	}
	dir, err := os.MkdirTemp("", "pointsman-copy-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded broker: making room for a copy: %w", err), lock())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := errors.Join(copyTopics(ctx, from, filepath.Join(dir, "kafka"), topics), lock()); err != nil {
		return nil, fmt.Errorf("embedded broker: copying %s: %w", dataDir, err)
	}
	cfg := Default()
	// Nothing is deleted for its age or for want of room: old records are what a copy is for.
	cfg.Addr, cfg.DataDir, cfg.Sweep, cfg.MaxBytes = "127.0.0.1:0", dir, 24*time.Hour, 1<<62
	b, err := Start(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	return &Copy{Broker: b, dir: dir}, nil
}

// Stop ends the broker and removes the copy.
func (c *Copy) Stop(ctx context.Context) error {
	err := c.Broker.Stop(ctx)
	if e := os.RemoveAll(c.dir); e != nil {
		err = errors.Join(err, fmt.Errorf("embedded broker: removing a copy: %w", e))
	}
	return err
}

// shareDir keeps brokers off a directory for a while, without writing to it.
func shareDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(filepath.Join(dir, "kafka.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil // a copy that somebody made by hand
	}
	if err != nil {
		return nil, fmt.Errorf("embedded broker: locking the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("embedded broker: data directory %s is %w by a running broker", dir, ErrInUse)
		}
		return nil, fmt.Errorf("embedded broker: locking %s: %w", dir, err)
	}
	return f.Close, nil
}

// copyTopics copies the state and the partitions of some topics. A topic that is not there is not copied.
func copyTopics(ctx context.Context, from, to string, topics []string) error {
	if err := os.MkdirAll(filepath.Join(to, "partitions"), 0o755); err != nil {
		return err
	}
	for _, name := range stateFiles {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(from, "partitions")) // one that nothing was written to has no folder
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		i := strings.LastIndexByte(e.Name(), '-')
		topic, err := url.PathUnescape(e.Name()[:max(i, 0)])
		if err != nil || !slices.Contains(topics, topic) {
			continue
		}
		dir := filepath.Join("partitions", e.Name())
		if err := copyDir(ctx, filepath.Join(from, dir), filepath.Join(to, dir)); err != nil {
			return err
		}
	}
	return nil
}

func copyDir(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Type().IsRegular() {
			if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	_, err = io.Copy(dst, src)
	return err
}
