package tpch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A folder is made under a name beside its own, .<name>.partial, and renamed when it is whole. A crash leaves only the
// partial folder, which the next run takes over; a lock on it keeps two runs apart.

type partial struct {
	dir  string
	lock *os.File
}

// lockPartial opens and locks the partial folder of dir, waiting for another run that holds it.
func lockPartial(ctx context.Context, dir string) (*partial, error) {
	path := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".partial")
	for {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, fmt.Errorf("making partial folder: %w", err)
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run renamed it between the two calls
		}
		if err != nil {
			return nil, fmt.Errorf("opening partial folder: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && sameFile(f, path) {
			return &partial{dir: path, lock: f}, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking partial folder: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another run on %s: %w", dir, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sameFile is false when the folder that was locked has been renamed away in the meantime.
func sameFile(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// empty removes what an earlier run left.
func (p *partial) empty() error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return fmt.Errorf("listing partial folder: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(p.dir, e.Name())); err != nil {
			return fmt.Errorf("emptying partial folder: %w", err)
		}
	}
	return nil
}

// publish renames the folder to its name. What is there is removed first; Generate has made sure that it may be.
func (p *partial) publish(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := os.Rename(p.dir, dir); err != nil {
		return fmt.Errorf("publishing data folder: %w", err)
	}
	return nil
}

// close gives the lock up; after publish the partial folder no longer exists, before it is removed.
func (p *partial) close() {
	if sameFile(p.lock, p.dir) {
		_ = os.RemoveAll(p.dir)
	}
	_ = p.lock.Close()
}

func writeSynced(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
