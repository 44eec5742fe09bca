package slots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
)

// kind is what sort of place a cap is for.
type kind string

const (
	cluster kind = "cluster"
	queue   kind = "queue"
	tenant  kind = "tenant"
)

// place is something that is capped.
type place struct {
	kind          kind
	cluster, name string
}

// places are those that an attempt takes a slot of, with their caps; 0 is none.
func places(c event.Caps, w event.SlotWant) (out [3]place, caps [3]int) {
	ofTenant, ok := c.Tenants[w.Tenant]
	if !ok {
		ofTenant = c.Tenant
	}
	return [3]place{{cluster, w.Cluster, ""}, {queue, w.Cluster, w.Queue}, {tenant, "", w.Tenant}},
		[3]int{c.Clusters[w.Cluster], c.Queues[w.Cluster][w.Queue], ofTenant}
}

// Covers reports whether any cap applies to an attempt.
func Covers(c event.Caps, w event.SlotWant) bool {
	_, caps := places(c, w)
	return max(caps[0], caps[1], caps[2]) > 0
}

// Any reports whether there is a cap at all.
func Any(c event.Caps) bool {
	n := c.Tenant
	for _, m := range append([]map[string]int{c.Clusters, c.Tenants}, queues(c)...) {
		for _, most := range m {
			n = max(n, most)
		}
	}
	return n > 0
}

func queues(c event.Caps) (out []map[string]int) {
	for _, m := range c.Queues {
		out = append(out, m)
	}
	return out
}

// Text is a set of caps for people. A cap of 0 is none, which a tenant may be given.
func Text(c event.Caps) string {
	var parts []string
	of := func(kind kind, caps map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(caps)) {
			parts = append(parts, fmt.Sprintf("%s %s %d", kind, name, caps[name]))
		}
	}
	of(cluster, c.Clusters)
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		for _, q := range slices.Sorted(maps.Keys(c.Queues[name])) {
			parts = append(parts, fmt.Sprintf("%s %s of %s %d", queue, q, name, c.Queues[name][q]))
		}
	}
	of(tenant, c.Tenants)
	if c.Tenant > 0 {
		parts = append(parts, fmt.Sprintf("any other %s %d", tenant, c.Tenant))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Same reports whether two sets of caps are the same.
func Same(a, b event.Caps) bool {
	return a.Tenant == b.Tenant && maps.Equal(a.Clusters, b.Clusters) && maps.Equal(a.Tenants, b.Tenants) &&
		maps.EqualFunc(a.Queues, b.Queues, maps.Equal)
}

// Full is a place that has no room.
type Full struct {
	Kind string // cluster, queue or tenant
	Name string
	Held int
	Cap  int
}
