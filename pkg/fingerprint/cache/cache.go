// Package cache remembers what the fingerprints of statements say, so that a statement seen before costs one pass over its
// text and no allocation.
//
// It is the edge of the pure packages: it has locks, goroutines, a clock and a random seed. Reading texts is left to
// packages lex, shape and tidbast. Nothing that is kept holds a literal.
package cache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// Options bound a cache.
type Options struct {
	// MaxBytes bounds what is remembered. Default 64 MiB.
	MaxBytes int
	// Budget is how long a lookup waits for the parser before it goes on with what the tokens say. Zero never waits.
	Budget time.Duration
	// Parsers bounds how many texts are parsed at once. Default 2.
	Parsers int
}

// Default returns the options that a service starts with.
func Default() Options { return Options{MaxBytes: 64 << 20, Budget: 2 * time.Millisecond, Parsers: 2} }

// Validate reports every option out of range.
func (o Options) Validate() error {
	var errs []error
	if o.MaxBytes < shards*4096 {
		errs = append(errs, fmt.Errorf("fingerprint cache: maxBytes %d: want at least %d", o.MaxBytes, shards*4096))
	}
	if o.Budget < 0 || o.Budget > time.Second {
		errs = append(errs, fmt.Errorf("fingerprint cache: budget %s: want 0 to 1s", o.Budget))
	}
	if o.Parsers < 1 || o.Parsers > 64 {
		errs = append(errs, fmt.Errorf("fingerprint cache: parsers %d: want 1 to 64", o.Parsers))
	}
	return errors.Join(errs...)
}

// Entry is what is remembered of one fingerprint. It is immutable.
type Entry struct {
	ID        fingerprint.ID
	Canonical string
	Template  *shape.Template
	// settled says that nothing better will come: the parser has had its turn.
	settled bool
}

// Parse reads a template in a costlier way than from tokens, or returns nil.
type Parse func(sql string, d lex.Dialect) *shape.Template

// Cache remembers entries by the key of their normalised text. It is safe for concurrent use.
type Cache struct {
	opts   Options
	parse  Parse
	seed   lex.Key
	shards [shards]shard
	counts counters

	mu     sync.Mutex
	calls  map[lex.Key]*call
	closed bool
	wait   sync.WaitGroup
}

// call is one text being parsed. entry is set before done is closed.
type call struct {
	done  chan struct{}
	entry *Entry
}

// New makes a cache that settles entries by parse, which is tidbast.Parse in a service. Close it when no lookup runs any
// more.
func New(opts Options, parse Parse) (*Cache, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	c := &Cache{opts: opts, parse: parse, calls: map[lex.Key]*call{}}
	var seed [16]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("fingerprint cache: seeding the key: %w", err)
	}
	// A secret seed keeps a tenant from making a text that another's entry answers.
	c.seed = lex.Key{Hi: binary.LittleEndian.Uint64(seed[:8]), Lo: binary.LittleEndian.Uint64(seed[8:])}
	for i := range c.shards {
		if err := c.shards[i].init(opts.MaxBytes / shards); err != nil {
			return nil, fmt.Errorf("fingerprint cache: %w", err)
		}
	}
	return c, nil
}

// Lookup is the memory of one lookup. Its owner uses it again for the next text; what it returned before is void then.
type Lookup struct {
	Entry   *Entry
	Result  lex.Result
	Binding shape.Binding
	spans   lex.Spans
	sql     string
}

// Shape is the statement's shape with the values of its literals.
func (l *Lookup) Shape() shape.Shape { return l.Entry.Template.Shape(&l.Binding, l.sql) }

// Get finds what the text's fingerprint says and binds its literals. A context that ends cuts only the waiting short: the
// answer is then what the tokens say.
func (c *Cache) Get(ctx context.Context, sql string, d lex.Dialect, l *Lookup) {
	l.sql = sql
	l.Result = lex.Run(sql, d, c.seed, &l.spans)
	key := l.Result.Key
	s := c.shard(key)
	l.Entry = s.get(key)
	switch {
	case l.Entry == nil:
		c.counts.misses.Add(1)
		l.Entry = c.miss(ctx, key, sql, d)
	case !l.Entry.settled:
		c.counts.hits.Add(1)
		c.start(key, sql, d, l.Entry)
	default:
		c.counts.hits.Add(1)
	}
	l.Entry.Template.Bind(&l.Binding, sql, d, l.Result, &l.spans)
}

// miss reads the tokens, then gives the parser its time.
func (c *Cache) miss(ctx context.Context, key lex.Key, sql string, d lex.Dialect) *Entry {
	var spans lex.Spans
	template, _ := shape.Extract(sql, d, &spans)
	fp := fingerprint.New(sql, d)
	e := &Entry{ID: fp.ID, Canonical: fp.Canonical, Template: template}
	e = c.shard(key).add(key, e)
	if e.settled {
		return e
	}
	at := c.start(key, sql, d, e)
	if at == nil || c.opts.Budget == 0 {
		return e
	}
	timer := time.NewTimer(c.opts.Budget)
	defer timer.Stop()
	select {
	case <-at.done:
		return at.entry
	case <-timer.C:
		c.counts.late.Add(1)
	case <-ctx.Done():
	}
	return e
}

// start lets the parser settle an entry. One text is parsed once, however many ask; if all parsers are busy it returns nil,
// and a later lookup asks again. The map is both what singles calls out and what counts them, which a singleflight.Group
// is not.
func (c *Cache) start(key lex.Key, sql string, d lex.Dialect, e *Entry) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.calls[key]; at != nil || c.closed {
		return at
	}
	if len(c.calls) >= c.opts.Parsers {
		c.counts.busy.Add(1)
		return nil
	}
	at := &call{done: make(chan struct{})}
	c.calls[key] = at
	c.wait.Go(func() {
		at.entry = c.settle(key, sql, d, e)
		close(at.done)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, key)
	})
	return at
}

// settle replaces an entry by one that the parser has seen. The next lookup finds it, however late it comes.
func (c *Cache) settle(key lex.Key, sql string, d lex.Dialect, e *Entry) *Entry {
	better := &Entry{ID: e.ID, Canonical: e.Canonical, Template: e.Template, settled: true}
	if c.parse != nil {
		c.counts.parses.Add(1)
		if t := c.parse(sql, d); t != nil {
			better.Template = t
		} else {
			c.counts.refusals.Add(1)
		}
	}
	c.shard(key).replace(key, better)
	return better
}

// Close waits for the parsers that are still at work.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wait.Wait()
}
