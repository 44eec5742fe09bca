package chdb

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

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
