package chdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Ensure gives the path of the engine's library. CHDB_LIB_PATH names one outright; otherwise it is
// the one in the user's cache folder, which is fetched with npm, checked and unpacked there when it is
// not there yet. progress, which may be nil, is told how many bytes of the work are done.
// Several processes may call it at once: one fetches, the others wait for it.
func Ensure(ctx context.Context, progress func(done, total int64)) (libPath string, err error) {
	if path := os.Getenv(libraryEnv); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", libraryEnv, err)
		}
		if info.IsDir() {
			return "", fmt.Errorf("%s is the folder %s: it must name the library's file", libraryEnv, path)
		}
		return path, nil
	}
	b, ok := builds[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("there is no published build of the embedded ClickHouse library %s for %s/%s: set %s to a libchdb you have, or use a clickhouse-server of your own", libraryVersion, runtime.GOOS, runtime.GOARCH, libraryEnv)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder for the embedded ClickHouse library (or set %s): %w", libraryEnv, err)
	}
	f := fetcher{build: b, dir: filepath.Join(cache, "pointsman", "chdb", libraryVersion), progress: progress}
	if f.present() {
		return f.path(), nil
	}
	if err := f.fetch(ctx); err != nil {
		return "", fmt.Errorf("fetching the embedded ClickHouse library: %w", err)
	}
	return f.path(), nil
}

// fetcher brings one build into its folder.
type fetcher struct {
	build    build
	dir      string
	progress func(done, total int64)
	done     int64
}

func (f *fetcher) path() string { return filepath.Join(f.dir, "libchdb.so") }

// present says that the library is there. It only ever appears by a rename of a checked file, so its
// size is enough of a check.
func (f *fetcher) present() bool {
	info, err := os.Stat(f.path())
	return err == nil && info.Mode().IsRegular() && info.Size() == f.build.libraryBytes
}

func (f *fetcher) fetch(ctx context.Context) error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, f.dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if f.present() {
		return nil
	}
	tmp, err := os.MkdirTemp(f.dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	tarball, err := f.npmPack(ctx, tmp)
	if err != nil {
		return err
	}
	library := filepath.Join(tmp, "libchdb.so")
	if err := f.unpack(ctx, tarball, library); err != nil {
		return err
	}
	return os.Rename(library, f.path())
}

// lock takes the lock file, waiting for another process that has it. The system drops the lock of a
// process that dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		}
	}
}
