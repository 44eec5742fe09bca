package cache

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

const shards = 16

// shard is a part of the cache with a lock of its own. The list of what was used last is bounded in bytes, not in entries:
// its own capacity is never reached.
type shard struct {
	mu    sync.Mutex
	list  *simplelru.LRU[lex.Key, *Entry]
	bytes int
	max   int
}

func (s *shard) init(maxBytes int) error {
	list, err := simplelru.NewLRU(maxBytes/overhead+1, func(_ lex.Key, e *Entry) { s.bytes -= e.size() })
	if err != nil {
		return fmt.Errorf("making a shard: %w", err)
	}
	s.list, s.max = list, maxBytes
	return nil
}

// overhead is about what an entry takes beside its texts.
const overhead = 512

func (e *Entry) size() int { return overhead + len(e.Canonical) + e.Template.Size() }

func (c *Cache) shard(key lex.Key) *shard { return &c.shards[key.Lo%shards] }

func (s *shard) get(key lex.Key) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.list.Get(key)
	return e
}

// add keeps an entry, or returns the one that another lookup has added meanwhile.
func (s *shard) add(key lex.Key, e *Entry) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.list.Get(key); ok {
		return have
	}
	s.put(key, e)
	return e
}

// replace keeps an entry in place of the one that is there. If that one was evicted, it comes back: it was asked for a
// moment ago.
func (s *shard) replace(key lex.Key, e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.Remove(key)
	s.put(key, e)
}

// put adds an entry that is not there and drops the oldest until all fit. What would fill the shard alone is not kept.
func (s *shard) put(key lex.Key, e *Entry) {
	n := e.size()
	if n > s.max/4 {
		return
	}
	s.list.Add(key, e)
	for s.bytes += n; s.bytes > s.max; {
		s.list.RemoveOldest()
	}
}

type counters struct {
	hits, misses, parses, refusals, late, busy atomic.Uint64
}

// Stats says what a cache has done and holds.
type Stats struct {
	Hits, Misses uint64
	// Parses counts the texts given to the parser, Refusals those that it did not read.
	Parses, Refusals uint64
	// Late counts lookups that went on without the parser, Busy those that found all parsers at work.
	Late, Busy uint64
	Entries    int
	Bytes      int
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	s := Stats{
		Hits: c.counts.hits.Load(), Misses: c.counts.misses.Load(), Parses: c.counts.parses.Load(),
		Refusals: c.counts.refusals.Load(), Late: c.counts.late.Load(), Busy: c.counts.busy.Load(),
	}
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		s.Entries += sh.list.Len()
		s.Bytes += sh.bytes
		sh.mu.Unlock()
	}
	return s
}
