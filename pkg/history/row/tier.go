package row

import "time"

var tiers = []struct {
	most time.Duration
	name string
}{
	{time.Second, "1s"},
	{5 * time.Second, "5s"},
	{10 * time.Second, "10s"},
	{30 * time.Second, "30s"},
	{time.Minute, "1m"},
	{5 * time.Minute, "5m"},
	{15 * time.Minute, "15m"},
	{time.Hour, "1h"},
}

// Tier is the class of an SLA: the smallest bound of a fixed list that holds it. Rates are kept per tier, because SLAs of
// one's own choosing would give every Task a bucket of its own. An SLA of zero is none.
func Tier(slaMs uint64) string {
	if slaMs == 0 {
		return ""
	}
	for _, t := range tiers {
		if slaMs <= uint64(t.most.Milliseconds()) {
			return t.name
		}
	}
	return "over 1h"
}
