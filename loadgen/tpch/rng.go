package tpch

import "math/bits"

// golden is the increment of splitmix64: 2^64 divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// rng is splitmix64. It is written out here because the bytes of a data set must not change with a Go release, and
// because a generator per row is only possible when seeding costs nothing.
type rng struct{ state uint64 }

// rowRNG is the generator of one row: any row can be made without those before it, so that files are made in parallel.
func rowRNG(seed uint64, table Table, row int64) rng {
	return rng{state: mix(seed^mix(tableSalt(table))) ^ mix(uint64(row)+golden)}
}

func tableSalt(table Table) uint64 {
	var h uint64 = 14695981039346656037 // FNV-1a
	for i := range len(table) {
		h = (h ^ uint64(table[i])) * 1099511628211
	}
	return h
}

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func (r *rng) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// below returns a number in [0, n).
func (r *rng) below(n int64) int64 {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int64(hi)
}

// between returns a number in [lo, hi], both ends included, as TPC-H writes its ranges.
func (r *rng) between(lo, hi int64) int64 { return lo + r.below(hi-lo+1) }

// skewed returns a number in [0, n) where small ones are more likely: the first tenth gets a third of the draws.
// Integer arithmetic only, since floats may differ between processors.
func (r *rng) skewed(n int64) int64 {
	a, b := r.below(n), r.below(n)
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

func pick[T any](r *rng, list []T) T { return list[r.below(int64(len(list)))] }
