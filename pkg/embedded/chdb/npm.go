package chdb

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

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
	cmd.WaitDelay = 2 * time.Second
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

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
