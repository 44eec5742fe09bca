// Package result keeps what queries give: small results as JSON to be carried in the Outcome, larger ones as files that
// expire, in the format that the request asks for.
//
// How a row is written is pkg/rows'. Serving the files is intake's.
package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/rows"
)

// Config says where results are kept and how large they may be.
type Config struct {
	Folder string
	// InlineBytes is the most that is carried in an Outcome; more goes to a file.
	InlineBytes int64
	// MaxBytes cuts a result short.
	MaxBytes int64
	// Keep is how long a file is served.
	Keep time.Duration
}

// Store writes results.
type Store struct{ cfg Config }

// endings are those of files by format.
var endings = map[rows.Format]string{rows.NDJSON: ".ndjson", rows.CSV: ".csv", rows.Arrow: ".arrows"}

const (
	tempPrefix = ".writing-"
	// graceful is how much longer than its promise a file stays: whoever has begun to read it may finish.
	graceful = time.Minute
	// tempAge is when an unfinished file is taken for one of a process that died. A file that is still written is touched all
	// the time.
	tempAge = time.Hour
)

// Open makes the folder.
func Open(cfg Config) (*Store, error) {
	if err := os.MkdirAll(cfg.Folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the result folder: %w", err)
	}
	return &Store{cfg: cfg}, nil
}

// fileName is a name for an attempt's file, without an ending, that stays within the folder whatever the id is.
func fileName(attemptID string) string {
	name := strings.ReplaceAll(attemptID, "/", "_")
	if !query.ValidID(name) || strings.HasPrefix(name, ".") {
		name = query.IDFromKey("attempt", attemptID)
	}
	return name
}

// Sweep removes files that have expired, and what processes that died have left behind.
func (s *Store) Sweep(now time.Time) (removed int, err error) {
	entries, err := os.ReadDir(s.cfg.Folder)
	if err != nil {
		return 0, fmt.Errorf("reading the result folder: %w", err)
	}
	var errs []error
	for _, e := range entries {
		age := s.cfg.Keep + graceful
		switch name := e.Name(); {
		case !e.Type().IsRegular():
			continue
		case strings.HasPrefix(name, tempPrefix):
			age = tempAge
		case !ours(name):
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && now.Sub(info.ModTime()) > age {
			err = os.Remove(filepath.Join(s.cfg.Folder, e.Name()))
			if err == nil {
				removed++
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("removing old results: %w", err)
	}
	return removed, nil
}

// ours says that a finished file has a name that this package gives.
func ours(name string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

// New begins the result of an attempt. format is that of a file, NDJSON where the request names none that a file can have; inline
// bounds what may be carried in the Outcome, below the configured bound.
func (s *Store) New(attemptID string, format rows.Format, columns []event.Column, inline int64) *Sink {
	if endings[format] == "" {
		format = rows.NDJSON
	}
	return &Sink{
		store: s, name: fileName(attemptID), format: format, columns: columns, inline: min(inline, s.cfg.InlineBytes), line: rows.NewEncoder(columns),
	}
}
