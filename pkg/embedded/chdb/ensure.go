package chdb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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

// npmPack lets npm download the package into dir. npm says nothing of its progress, but what it has
// got so far lies in its cache, which is put under dir for the time.
func (f *fetcher) npmPack(ctx context.Context, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm is not installed: install Node.js with npm (Debian and Ubuntu: apt-get install npm; Fedora: dnf install npm), or set %s to a libchdb.so of version %s", libraryEnv, libraryVersion)
	}
	spec := f.build.pkg + "@" + libraryVersion
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, npm, "pack", spec, "--silent", "--ignore-scripts", "--cache", filepath.Join(dir, "cache"))
	cmd.Dir, cmd.Stderr = dir, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stopWatch := f.watch(dir)
	out, err := cmd.Output()
	stopWatch()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("`npm pack %s` failed: %w: %s\ncheck the network and npm's registry and proxy settings (`npm ping`), or set %s to a libchdb.so of version %s", spec, err, lastLines(stderr.String()), libraryEnv, libraryVersion)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	f.report(f.build.tarballBytes)
	return filepath.Join(dir, filepath.Base(lines[len(lines)-1])), nil
}

// watch reports the growth of a folder until its result is called.
func (f *fetcher) watch(dir string) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				f.report(min(folderSize(dir), f.build.tarballBytes))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func folderSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

func (f *fetcher) report(done int64) {
	f.done = max(f.done, done)
	if f.progress != nil {
		f.progress(f.done, f.build.tarballBytes+f.build.libraryBytes)
	}
}

// unpack checks the package and writes the library out of it, checking that too.
func (f *fetcher) unpack(ctx context.Context, tarball, library string) error {
	in, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	sum := sha512.New()
	if _, err := io.Copy(sum, in); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != f.build.tarballSHA512 {
		return fmt.Errorf("the package has the wrong checksum: sha512 is %s, must be %s", got, f.build.tarballSHA512)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("unpacking: the package holds no libchdb.so")
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if filepath.Base(header.Name) == "libchdb.so" && header.Typeflag == tar.TypeReg {
			return f.write(ctx, files, library)
		}
	}
}

func (f *fetcher) write(ctx context.Context, from io.Reader, library string) error {
	out, err := os.OpenFile(library, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	sum := sha256.New()
	counted := &counter{ctx: ctx, f: f}
	_, err = io.CopyBuffer(io.MultiWriter(out, sum, counted), struct{ io.Reader }{from}, make([]byte, 1<<20))
	err = errors.Join(err, out.Sync(), out.Close())
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.build.librarySHA256 {
		return fmt.Errorf("the library has the wrong checksum: sha256 is %s, must be %s", got, f.build.librarySHA256)
	}
	return nil
}

// counter reports what passes through it and stops when the context ends.
type counter struct {
	ctx context.Context
	f   *fetcher
	n   int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	c.f.report(c.f.build.tarballBytes + c.n)
	return len(p), context.Cause(c.ctx)
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

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
