package tpch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options are the arguments of Generate. Dir, Scale, Seed and Tables decide what is made; the others how.
type Options struct {
	Dir    string
	Scale  float64 // 1 is TPC-H's scale factor 1: 1.5 million orders
	Seed   uint64
	Tables []Table // none means all

	Parallel int  // files made at a time; 0 means one for each processor
	Replace  bool // replace a complete folder that was made with other arguments
	// Progress is told the rows made so far and the rows expected, from one goroutine at a time; the expected number
	// of line items is a mean. Nil is allowed.
	Progress func(rows, total int64)
}

// ErrOccupied means that the folder holds something that these arguments did not make.
var ErrOccupied = errors.New("folder is occupied")

// Generate makes the tables in a folder, or finds them there, complete, from an earlier run with the same arguments.
// The folder appears whole or not at all.
func Generate(ctx context.Context, opts Options) (Manifest, error) {
	tables, err := selection(opts.Tables)
	if err != nil {
		return Manifest{}, err
	}
	if !(opts.Scale >= MinScale && opts.Scale <= MaxScale) { // written so that NaN fails
		return Manifest{}, fmt.Errorf("scale %v is not between %v and %v", opts.Scale, MinScale, MaxScale)
	}
	if opts.Dir == "" {
		return Manifest{}, errors.New("no folder named")
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return Manifest{}, fmt.Errorf("resolving folder: %w", err)
	}
	if m, done, err := existing(opts, tables); done || err != nil {
		return m, err
	}
	p, err := lockPartial(ctx, opts.Dir)
	if err != nil {
		return Manifest{}, err
	}
	defer p.close()
	if m, done, err := existing(opts, tables); done || err != nil { // another run may have finished while we waited
		return m, err
	}
	if err := p.empty(); err != nil {
		return Manifest{}, err
	}
	files, err := newGenerator(opts).run(ctx, p.dir, tables)
	if err != nil {
		return Manifest{}, fmt.Errorf("generating %s: %w", opts.Dir, err)
	}
	m := newManifest(opts, tables, files)
	if err := m.write(p.dir); err != nil {
		return Manifest{}, err
	}
	return m, p.publish(opts.Dir)
}

// existing reports whether the folder is done already, and refuses one that may not be overwritten.
func existing(opts Options, tables []Table) (Manifest, bool, error) {
	entries, err := os.ReadDir(opts.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return Manifest{}, false, nil
	}
	if err != nil {
		return Manifest{}, false, fmt.Errorf("reading folder: %w", err)
	}
	m, err := Load(opts.Dir)
	switch {
	case err == nil && m.madeWith(opts.Scale, opts.Seed, tables):
		return m, true, nil
	case err == nil && opts.Replace:
		return Manifest{}, false, nil
	case err == nil:
		return Manifest{}, false, fmt.Errorf("%s holds scale %v, seed %d, version %d, %d tables (replace it, or choose another folder): %w",
			opts.Dir, m.Scale, m.Seed, m.Version, len(m.Tables), ErrOccupied)
	case errors.Is(err, ErrIncomplete) && hasManifest(opts.Dir):
		return Manifest{}, false, nil // ours, but files were lost: make it again
	case errors.Is(err, ErrIncomplete):
		return Manifest{}, false, fmt.Errorf("%s has files but no %s: %w", opts.Dir, ManifestName, ErrOccupied)
	default:
		return Manifest{}, false, err
	}
}

func hasManifest(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ManifestName))
	return err == nil
}

// generator holds what rows are made of.
type generator struct {
	seed     uint64
	counts   counts
	text     text
	clerks   []string
	parallel int

	mu       sync.Mutex
	rows     int64
	total    int64
	progress func(rows, total int64)
}

func newGenerator(opts Options) *generator {
	g := &generator{
		seed: opts.Seed, counts: countsAt(opts.Scale), text: newText(opts.Seed), parallel: opts.Parallel, progress: opts.Progress,
	}
	if g.parallel <= 0 {
		g.parallel = runtime.GOMAXPROCS(0)
	}
	for i := range max(1, int64(1000*opts.Scale)) {
		g.clerks = append(g.clerks, numbered("Clerk#", i+1))
	}
	return g
}

// made counts rows for the progress callback.
func (g *generator) made(rows int) {
	if g.progress == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rows += int64(rows)
	g.progress(g.rows, g.total)
}

// run makes every file, a few at a time.
func (g *generator) run(ctx context.Context, root string, tables []Table) (map[Table][]File, error) {
	var mu sync.Mutex
	files := map[Table][]File{}
	jobs := g.plan(tables)
	for _, t := range tables {
		g.total += g.counts.of(t)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(g.parallel)
	for _, job := range jobs {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			made, err := job(ctx, root)
			mu.Lock()
			defer mu.Unlock()
			for t, f := range made {
				files[t] = append(files[t], f)
			}
			return err
		})
	}
	return files, group.Wait()
}
