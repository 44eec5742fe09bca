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
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakePackage is a package as npm would deliver it, with the build that describes it.
func fakePackage(t *testing.T) (build, []byte) {
	t.Helper()
	library := bytes.Repeat([]byte("library "), 100_000)
	var tarball bytes.Buffer
	zip := gzip.NewWriter(&tarball)
	files := tar.NewWriter(zip)
	for name, data := range map[string][]byte{"package/package.json": []byte("{}"), "package/libchdb.so": library} {
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}))
		_, err := files.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, zip.Close())
	packed, unpacked := sha512.Sum512(tarball.Bytes()), sha256.Sum256(library)
	return build{
		pkg: "@test/lib", tarballBytes: int64(tarball.Len()), tarballSHA512: base64.StdEncoding.EncodeToString(packed[:]),
		libraryBytes: int64(len(library)), librarySHA256: hex.EncodeToString(unpacked[:]),
	}, tarball.Bytes()
}

// fakeNPM puts a program called npm in front that delivers the package and counts how often it ran.
func fakeNPM(t *testing.T, tarball []byte, script string) (calls func() int) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source.tgz")
	require.NoError(t, os.WriteFile(source, tarball, 0o600))
	text := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%[1]s/calls\n%[2]s\ncp %[3]s package-1.0.tgz\necho package-1.0.tgz\n", dir, script, source)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "npm"), []byte(text), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		lines, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return bytes.Count(lines, []byte("\n"))
	}
}

func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return found
}

func TestFetch(t *testing.T) {
	b, tarball := fakePackage(t)
	calls := fakeNPM(t, tarball, "sleep 0.3")
	dir := filepath.Join(t.TempDir(), "deep", "er")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			f := fetcher{build: b, dir: dir}
			if err := f.fetch(t.Context()); err != nil {
				t.Errorf("fetching: %v", err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, calls(), "one fetches, the others wait for it")
	require.Equal(t, []string{filepath.Join(dir, "libchdb.so")}, leftovers(t, dir))
	info, err := os.Stat(filepath.Join(dir, "libchdb.so"))
	require.NoError(t, err)
	require.Equal(t, b.libraryBytes, info.Size())
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
}

func TestFetchReportsProgress(t *testing.T) {
	b, tarball := fakePackage(t)
	fakeNPM(t, tarball, "")
	var reports [][2]int64
	f := fetcher{build: b, dir: t.TempDir(), progress: func(done, total int64) { reports = append(reports, [2]int64{done, total}) }}
	require.NoError(t, f.fetch(t.Context()))
	total := b.tarballBytes + b.libraryBytes
	require.Equal(t, [2]int64{total, total}, reports[len(reports)-1])
	last := int64(0)
	for _, r := range reports {
		require.GreaterOrEqual(t, r[0], last, "never backwards")
		require.Equal(t, total, r[1])
		last = r[0]
	}
}

func TestFetchFailures(t *testing.T) {
	b, tarball := fakePackage(t)
	for _, c := range []struct {
		name   string
		script string
		edit   func(*build)
		want   []string
	}{
		{"npm fails", "echo 'code ENOTFOUND' >&2; exit 7", nil, []string{"npm pack @test/lib@", "ENOTFOUND", "CHDB_LIB_PATH"}},
		{"another package", "", func(b *build) { b.tarballSHA512 = "x" }, []string{"wrong checksum", "sha512"}},
		{"another library", "", func(b *build) { b.librarySHA256 = "x" }, []string{"wrong checksum", "sha256"}},
		{"no file", "echo nothing.tgz; exit 0", nil, []string{"no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeNPM(t, tarball, c.script)
			b := b
			if c.edit != nil {
				c.edit(&b)
			}
			f := fetcher{build: b, dir: t.TempDir()}
			err := f.fetch(t.Context())
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.Empty(t, leftovers(t, f.dir), "nothing half done is left")
		})
	}
	t.Run("no npm", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		f := fetcher{build: b, dir: t.TempDir()}
		err := f.fetch(t.Context())
		require.ErrorContains(t, err, "npm is not installed: install Node.js")
		require.ErrorContains(t, err, "CHDB_LIB_PATH")
	})
	t.Run("given up", func(t *testing.T) {
		fakeNPM(t, tarball, "exec sleep 30")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		f := fetcher{build: b, dir: t.TempDir()}
		start := time.Now()
		require.ErrorIs(t, f.fetch(ctx), context.DeadlineExceeded)
		require.Less(t, time.Since(start), 10*time.Second)
	})
}

func TestLockWaitsForItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = lock(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unlock()
	unlock, err = lock(t.Context(), path)
	require.NoError(t, err)
	unlock()
}

func TestEnsureTakesTheNamedLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.so")
	t.Setenv(libraryEnv, path)
	_, err := Ensure(t.Context(), nil)
	require.ErrorContains(t, err, "CHDB_LIB_PATH")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	got, err := Ensure(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, path, got)
	t.Setenv(libraryEnv, filepath.Dir(path))
	_, err = Ensure(t.Context(), nil)
	require.ErrorContains(t, err, "folder")
}

// TestScriptFetchesTheSame: the script for machines that are prepared ahead must not drift.
func TestScriptFetchesTheSame(t *testing.T) {
	script, err := os.ReadFile("../../../scripts/fetch-chdb.sh")
	require.NoError(t, err)
	b := builds["linux/amd64"]
	for _, want := range []string{"version=" + libraryVersion + "\n", "package=" + b.pkg + "\n", fmt.Sprintf("library_bytes=%d\n", b.libraryBytes), "library_sha256=" + b.librarySHA256 + "\n", "pointsman/chdb/$version", "libchdb.so"} {
		require.Contains(t, string(script), want)
	}
}
