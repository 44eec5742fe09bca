package attempt

import (
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/failure"
)

// Bounds are what a running attempt may take before it is stopped in favour of another place. A zero field bounds nothing.
type Bounds struct {
	// SLA is what was promised from the Task's submission to its result, Factor how many times as long is let pass.
	SLA    time.Duration
	Factor float64
	// EstimatedBytes were expected to be read, and it may read up to ReadBytes.
	EstimatedBytes, ReadBytes int64
	// MemoryBytes is what its resource profile gives one query.
	MemoryBytes int64
}

// Any reports whether there is anything to watch.
func (b Bounds) Any() bool { return b.SLA > 0 || b.ReadBytes > 0 || b.MemoryBytes > 0 }

// Progress is what is known of a running attempt. A nil field is unknown, and unknown is never over a bound.
type Progress struct {
	// Since counts from the Task's submission, Running from the attempt's start at the engine.
	Since, Running  time.Duration
	ReadBytes       *int64
	PeakMemoryBytes *int64
	// Done is the share of its work that the engine says is done, 0 to 1.
	Done *float64
}

// Overrun says whether a running attempt is over one of its bounds: the class of failure to stop it with, and why in words.
// The empty class lets it go on.
//
// An attempt is late only by its own fault: it must have run for as long as the SLA by itself, so that one that stood in line
// for long is not stopped as soon as it starts. One that is known to be past its middle is left to finish, since it would have
// to begin anew elsewhere.
func (b Bounds) Overrun(p Progress) (failure.Class, string) {
	if p.PeakMemoryBytes != nil && b.MemoryBytes > 0 && *p.PeakMemoryBytes > b.MemoryBytes {
		return failure.MemoryLimit, fmt.Sprintf("it took %d bytes of memory, and its resource profile gives it %d", *p.PeakMemoryBytes, b.MemoryBytes)
	}
	if p.ReadBytes != nil && b.ReadBytes > 0 && *p.ReadBytes > b.ReadBytes {
		return failure.EstimateOverrun, fmt.Sprintf("it had read %d bytes and was not done, and %d were estimated", *p.ReadBytes, b.EstimatedBytes)
	}
	if b.SLA > 0 && p.Running >= b.SLA && p.Since > time.Duration(float64(b.SLA)*b.Factor) && !b.pastMiddle(p) {
		return failure.SLAOverrun, fmt.Sprintf("it was not done %s after its Task was submitted, of which it ran %s, and its SLA is %s",
			p.Since.Round(time.Millisecond), p.Running.Round(time.Millisecond), b.SLA)
	}
	return "", ""
}

// pastMiddle says that more than half of its work is known to be done: by the engine's own reckoning, or by the estimated bytes where
// the engine has none.
func (b Bounds) pastMiddle(p Progress) bool {
	if p.Done != nil {
		return *p.Done > 0.5
	}
	return b.EstimatedBytes > 0 && p.ReadBytes != nil && *p.ReadBytes > b.EstimatedBytes/2
}
