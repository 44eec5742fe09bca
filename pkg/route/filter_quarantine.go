package route

import "github.com/pointsman/pointsman/pkg/event"

// outOfQuarantine removes a cluster that was unhealthy and has not been healthy again for as many observations as the policy
// asks for. A quarantine of which nothing is known, or which nothing has confirmed for too long, keeps nobody out: usable has said
// by then what is known of the health itself.
func outOfQuarantine(s *scene, c *candidate) *event.Filtered {
	if c.pool.ReadmitSamples < 2 {
		return nil
	}
	name := c.pool.QuarantineLatch()
	for i := range s.in.Policy.Latches {
		if spec := &s.in.Policy.Latches[i]; spec.Name == name {
			if on := spec.At(s.in.Latches[name], s.in.Now); on.Known && on.Number != 0 {
				return later(false, ClusterQuarantined, "samples", integer(int64(c.pool.ReadmitSamples)))
			}
		}
	}
	return nil
}
