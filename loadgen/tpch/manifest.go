package tpch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ManifestName is the file that makes a folder complete: it is written last, and the folder appears by one rename.
const ManifestName = "_manifest.json"

// Version changes whenever the same arguments would give other bytes, so that an older folder is not taken for a new one.
const Version = 1

// Manifest says what a data folder holds. It carries no time and no machine, so it is as deterministic as the files.
type Manifest struct {
	Generator string          `json:"generator"`
	Version   int             `json:"version"`
	Scale     float64         `json:"scale"`
	Seed      uint64          `json:"seed"`
	Rows      int64           `json:"rows"`
	Bytes     int64           `json:"bytes"`
	Tables    []TableManifest `json:"tables"`
}

// TableManifest is one table of a data folder.
type TableManifest struct {
	Name    Table    `json:"name"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	Columns []Column `json:"columns"`
	Files   []File   `json:"files"`
}

// File is one Parquet file; Path is relative to the folder, with forward slashes.
type File struct {
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	XXH3  string `json:"xxh3"`
}

// ErrIncomplete means that a folder has no manifest, or that files it names are missing or have another size.
var ErrIncomplete = errors.New("incomplete data folder")

// Load reads the manifest of a folder and checks that every file it names is there with its size.
func Load(dir string) (Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("reading %s: no %s: %w", dir, ManifestName, ErrIncomplete)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("reading data folder: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return Manifest{}, fmt.Errorf("reading %s: %w: %w", filepath.Join(dir, ManifestName), ErrIncomplete, err)
	}
	for _, t := range m.Tables {
		for _, f := range t.Files {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path)))
			if err != nil {
				return Manifest{}, fmt.Errorf("checking data folder: %w: %w", ErrIncomplete, err)
			}
			if info.Size() != f.Bytes {
				return Manifest{}, fmt.Errorf("checking data folder: %s has %d bytes, its manifest says %d: %w", f.Path, info.Size(), f.Bytes, ErrIncomplete)
			}
		}
	}
	return m, nil
}

// Table returns a table of the manifest.
func (m Manifest) Table(name Table) (TableManifest, bool) {
	i := slices.IndexFunc(m.Tables, func(t TableManifest) bool { return t.Name == name })
	if i < 0 {
		return TableManifest{}, false
	}
	return m.Tables[i], true
}

// madeWith reports whether the folder is what these arguments give.
func (m Manifest) madeWith(scale float64, seed uint64, tables []Table) bool {
	return m.Generator == generatorName && m.Version == Version && m.Scale == scale && m.Seed == seed &&
		slices.EqualFunc(m.Tables, tables, func(t TableManifest, name Table) bool { return t.Name == name })
}

const generatorName = "pointsman loadgen tpch"

func newManifest(opts Options, tables []Table, files map[Table][]File) Manifest {
	m := Manifest{Generator: generatorName, Version: Version, Scale: opts.Scale, Seed: opts.Seed}
	for _, name := range tables {
		t := TableManifest{Name: name, Columns: Columns(name), Files: files[name]}
		slices.SortFunc(t.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		for _, f := range t.Files {
			t.Rows += f.Rows
			t.Bytes += f.Bytes
		}
		m.Rows += t.Rows
		m.Bytes += t.Bytes
		m.Tables = append(m.Tables, t)
	}
	return m
}

func (m Manifest) write(dir string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding manifest: %w", err)
	}
	return writeSynced(filepath.Join(dir, ManifestName), append(raw, '\n'))
}
