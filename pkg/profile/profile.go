// Package profile holds what history says of a fingerprint on a cluster, always with its sample size and window.
//
// It is core: numbers in, numbers out. pkg/history reads profiles from ClickHouse, pkg/route weighs them.
package profile

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Key names a profile: one class of queries on one cluster.
type Key struct {
	Fingerprint string `json:"fingerprint"`
	Engine      string `json:"engine"`
	Cluster     string `json:"cluster"`
	// Bucket is the size class of the parameters, as package shape prints it: the same text with other values may take
	// thousands of times as long. Empty means all of them together, and queries whose parameters have no size.
	Bucket string `json:"bucket,omitempty"`
}

// MarshalText makes keys usable as JSON object names: fingerprint|engine|cluster|bucket. Names hold no bar.
func (k Key) MarshalText() ([]byte, error) {
	return []byte(k.Fingerprint + "|" + k.Engine + "|" + k.Cluster + "|" + k.Bucket), nil
}

// UnmarshalText is the inverse of MarshalText. A key of three parts, as they were written before there were buckets, has
// the empty one.
func (k *Key) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "|")
	if len(parts) == 3 {
		parts = append(parts, "")
	}
	if len(parts) != 4 {
		return fmt.Errorf("profile key %q does not have three or four parts", text)
	}
	*k = Key{Fingerprint: parts[0], Engine: parts[1], Cluster: parts[2], Bucket: parts[3]}
	return nil
}

// Profile is the record of a fingerprint on a cluster over a window. A nil number is unknown, never zero.
type Profile struct {
	Key Key `json:"key"`
	// Window is the span that the counts cover, e.g. 7d; AsOf is when they were read.
	Window string    `json:"window"`
	AsOf   time.Time `json:"asOf"`

	// Runs counts the attempts that ended here, whatever their end; Successes and MemoryKills are parts of it.
	Runs        int64 `json:"runs"`
	Successes   int64 `json:"successes"`
	MemoryKills int64 `json:"memoryKills"`
	// SuccessesAfterKill counts successes later than the newest memory kill: evidence that the pool fits by now.
	SuccessesAfterKill int64 `json:"successesAfterKill"`

	// Tasks and Hits count the Tasks that ended here and those of them delivered within their SLA.
	Tasks int64 `json:"tasks"`
	Hits  int64 `json:"hits"`

	// ExecMs of the successful runs, in milliseconds at the engine.
	ExecMsMean *float64 `json:"execMsMean,omitempty"`
	ExecMsP50  *float64 `json:"execMsP50,omitempty"`
	ExecMsP95  *float64 `json:"execMsP95,omitempty"`
	// TimeStops counts the runs that were stopped for their time, another part of Runs, and TimeStopMs is how long they had
	// run by then on average: they would have taken at least that.
	TimeStops  int64    `json:"timeStops,omitempty"`
	TimeStopMs *float64 `json:"timeStopMs,omitempty"`
	// PeakMemoryBytes is the highest seen, ReadBytes the mean of what the engine read.
	PeakMemoryBytes *int64   `json:"peakMemoryBytes,omitempty"`
	ReadBytesMean   *float64 `json:"readBytesMean,omitempty"`
}

// HitRate is the share of Tasks delivered within their SLA with its Wilson 95 % interval, or false without a sample.
func (p Profile) HitRate() (rate, low, high float64, ok bool) {
	if p.Tasks <= 0 {
		return 0, 0, 0, false
	}
	low, high = Wilson(p.Hits, p.Tasks)
	return float64(p.Hits) / float64(p.Tasks), low, high, true
}

// Wilson is the 95 % score interval of hits out of n (E. B. Wilson, 1927). It stays inside [0, 1] and does not call
// 15 of 15 certain, as the Wald interval would. n <= 0 gives the whole range: nothing is known.
func Wilson(hits, n int64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	centre := p + z*z/(2*m)
	spread := z * math.Sqrt((p*(1-p)+z*z/(4*m))/m)
	div := 1 + z*z/m
	return max(0, (centre-spread)/div), min(1, (centre+spread)/div)
}

// Lookup is the answer to a batch look-up of profiles: what was found, and whether history could be asked at all.
type Lookup struct {
	// Found holds the profiles by key: that of all buckets together, and that of the Task's own bucket. A missing key with
	// Asked true means "no history".
	Found map[Key]Profile `json:"found,omitempty"`
	// Asked is false when history was down or too slow: nothing is known, which is not the same as "no history".
	Asked bool `json:"asked"`
}
