package tpch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/zeebo/xxh3"
)

const (
	// rowGroupRows bounds memory (about 10 MB for each file being written) and is fine enough to prune by.
	rowGroupRows = 64 << 10
	batchRows    = 1 << 10
)

// tableFile writes rows of one type to one Parquet file, a batch at a time.
type tableFile[T any] struct {
	path    string
	file    *os.File
	counter *countingWriter
	parquet *parquet.GenericWriter[T]
	batch   []T
	rows    int64
	made    func(rows int)
}

func create[T any](root, path string, made func(rows int)) (*tableFile[T], error) {
	full := filepath.Join(root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return nil, fmt.Errorf("making table folder: %w", err)
	}
	f, err := os.Create(full)
	if err != nil {
		return nil, fmt.Errorf("creating data file: %w", err)
	}
	c := &countingWriter{w: f, hash: xxh3.New()}
	// Created-by is pinned: the library's default names the build, which would change the bytes.
	// Snappy, since these files are read many times by engines short of processors.
	w := parquet.NewGenericWriter[T](c, parquet.Compression(&snappy.Codec{}), parquet.MaxRowsPerRowGroup(rowGroupRows),
		parquet.CreatedBy("pointsman-loadgen", fmt.Sprint(Version), ""))
	return &tableFile[T]{path: path, file: f, counter: c, parquet: w, batch: make([]T, 0, batchRows), made: made}, nil
}

func (t *tableFile[T]) add(row T) error {
	t.batch = append(t.batch, row)
	if len(t.batch) < batchRows {
		return nil
	}
	return t.flush()
}

func (t *tableFile[T]) flush() error {
	if _, err := t.parquet.Write(t.batch); err != nil {
		return fmt.Errorf("writing %s: %w", t.path, err)
	}
	t.rows += int64(len(t.batch))
	t.made(len(t.batch))
	t.batch = t.batch[:0]
	return nil
}

// close ends the file. It reaches the disk before the manifest does, so that a power cut can't leave the manifest alone.
func (t *tableFile[T]) close() (File, error) {
	err := t.flush()
	err = errors.Join(err, t.parquet.Close())
	if err == nil {
		err = t.file.Sync()
	}
	if err := errors.Join(err, t.file.Close()); err != nil {
		return File{}, fmt.Errorf("closing %s: %w", t.path, err)
	}
	return File{Path: t.path, Rows: t.rows, Bytes: t.counter.bytes, XXH3: fmt.Sprintf("%016x", t.counter.hash.Sum64())}, nil
}

// writeRows writes rows [from, to) of a table to a file.
func writeRows[T any](ctx context.Context, root, path string, from, to int64, made func(int), row func(int64) T) (File, error) {
	t, err := create[T](root, path, made)
	if err != nil {
		return File{}, err
	}
	for i := from; i < to; i++ {
		if i%batchRows == 0 && ctx.Err() != nil {
			_, _ = t.close()
			return File{}, context.Cause(ctx)
		}
		if err := t.add(row(i)); err != nil {
			_, _ = t.close()
			return File{}, err
		}
	}
	return t.close()
}

type countingWriter struct {
	w     io.Writer
	hash  *xxh3.Hasher
	bytes int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	_, _ = c.hash.Write(p[:n])
	return n, err
}
