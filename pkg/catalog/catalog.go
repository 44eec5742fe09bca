// Package catalog knows the tables that the engines share and how large they are, so that a query's scan can be bounded
// before it runs.
//
// It is an adapter: this one reads a folder of Parquet files, one sub-folder a table, as an embedded lakehouse has it.
// Pruning by partition and statistics is left to the Iceberg catalog.
package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// Source is the name under which estimates of this package travel.
const Source = "catalog"

// Folder is a catalog over a folder: <root>/<table>/*.parquet is table <schema>.<table>.
type Folder struct {
	root, schema string
	maxAge       time.Duration

	mu     sync.Mutex
	readAt time.Time
	bytes  map[string]int64
	err    error
}

// NewFolder makes a catalog of the tables under root, known to queries as schema.table. Sizes are read again when they
// are older than maxAge.
func NewFolder(root, schema string, maxAge time.Duration) *Folder {
	return &Folder{root: root, schema: schema, maxAge: maxAge}
}

// ScanBytes bounds what a query over the tables scans: the sum of the tables' file sizes. It is absent when the folder
// can't be read or a table is not in it, since a sum that leaves a table out would look like a small query.
func (f *Folder) ScanBytes(tables []string, now time.Time) signal.Value {
	if len(tables) == 0 {
		return signal.Missing(Source)
	}
	sizes, at, err := f.sizes(now)
	if err != nil {
		return signal.Missing(Source)
	}
	var sum int64
	for _, t := range tables {
		n, ok := sizes[f.name(t)]
		if !ok {
			return signal.Missing(Source)
		}
		sum += n
	}
	return signal.Of(float64(sum), signal.Bytes, Source, at)
}

// Knows reports whether the catalog has the table.
func (f *Folder) Knows(table string, now time.Time) bool {
	sizes, _, err := f.sizes(now)
	_, ok := sizes[f.name(table)]
	return err == nil && ok
}

// name is the table's name in the folder: the last part, if what stands before it is this catalog's schema or nothing.
func (f *Folder) name(table string) string {
	table = strings.ToLower(table)
	i := strings.LastIndexByte(table, '.')
	if i < 0 {
		return table
	}
	schema := table[:i]
	if j := strings.LastIndexByte(schema, '.'); j >= 0 {
		schema = schema[j+1:]
	}
	if schema != f.schema {
		return ""
	}
	return table[i+1:]
}

func (f *Folder) sizes(now time.Time) (map[string]int64, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readAt.IsZero() || now.Sub(f.readAt) > f.maxAge {
		f.bytes, f.err = read(f.root)
		f.readAt = now
	}
	return f.bytes, f.readAt, f.err
}

func read(root string) (map[string]int64, error) {
	out := map[string]int64{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || filepath.Ext(path) != ".parquet" {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // replaced while we looked
		}
		if err != nil {
			return err
		}
		out[strings.ToLower(filepath.Base(filepath.Dir(path)))] += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the table folder %s: %w", root, err)
	}
	return out, nil
}
