package policy

// A cluster that failed its check and answers the next one is not sound yet: it may be starting, or be up one second in three.
// With readmit_samples it is in quarantine until that many observations in a row have called it healthy. The quarantine is a
// latch like any other, so that every router has the same; rules may test it too.

// QuarantineLatch is the name of the latch that is on while the pool is in quarantine.
func (p *Pool) QuarantineLatch() string { return p.Name + "_quarantined" }

// quarantines are the latches of the pools that want a quarantine.
func quarantines(pools []Pool) []LatchSpec {
	var out []LatchSpec
	for i := range pools {
		p := &pools[i]
		if p.ReadmitSamples < 2 {
			continue
		}
		out = append(out, LatchSpec{
			Name: p.QuarantineLatch(), Watch: p.Name + "_healthy", Pool: p.Name, Fact: PoolHealthy,
			Enter: Edge{Op: Equal, Number: 0, Samples: 1},
			Leave: Edge{Op: Equal, Number: 1, Samples: p.ReadmitSamples},
			// Silence heals nobody: a check that is not made is not one that went well.
			AbsentAfter: LongestKeep, KeepFor: LongestKeep, implied: true,
		})
	}
	return out
}
