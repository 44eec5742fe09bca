package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// A temporary folder has a file in it that its process holds a lock on, so that another can tell whether it is still in use.
const (
	tempName = "pointsman-"
	tempLock = ".in-use"
)

// tempFolder makes a folder that is removed by the function it returns, and removes those that processes which were killed have
// left behind.
func tempFolder(parent string) (dir string, remove func() error, err error) {
	if err := sweepTemp(parent); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, tempName); err != nil {
		return "", nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, tempLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("locking a temporary folder: %w", err), os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// sweepTemp removes the folders that nobody holds. One without the file is left alone: it is not ours, or is being made.
func sweepTemp(parent string) error {
	if parent == "" {
		parent = os.TempDir()
	}
	locks, err := filepath.Glob(filepath.Join(parent, tempName+"*", tempLock))
	if err != nil {
		return fmt.Errorf("looking for old temporary folders: %w", err)
	}
	for _, path := range locks {
		lock, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // another user's, or gone just now
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // what can't be removed is tried again next time
		}
		_ = lock.Close()
	}
	return nil
}
