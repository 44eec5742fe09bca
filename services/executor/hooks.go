package executor

import (
	"context"

	"github.com/pointsman/pointsman/pkg/attempt"
)

// Step is a point in an attempt's life at which a test may stop the executor.
type Step string

// The steps.
const (
	StepPlaced     Step = "placed"     // the Task is known, nothing is claimed
	StepClaiming   Step = "claiming"   // about to write the claim
	StepClaimed    Step = "claimed"    // the claim stands, the guard is not checked yet
	StepSubmitting Step = "submitting" // the guard held, the query is about to leave
	StepSubmitted  Step = "submitted"  // the engine has answered
	StepEnding     Step = "ending"     // about to write the end
	StepEnded      Step = "ended"      // the end stands, nothing of it is published
	StepPublished  Step = "published"  // the Outcome is acknowledged, the decision's offset is not committed
)

// Hooks are for tests only. They are called on the Task's own goroutine and may block.
type Hooks struct {
	At func(ctx context.Context, step Step, attemptID string)
	// Effect is called before each effect of a transition of the attempt table.
	Effect func(ctx context.Context, attemptID string, from attempt.State, e attempt.Event, effect attempt.Effect)
}

func (h Hooks) at(ctx context.Context, step Step, attemptID string) {
	if h.At != nil {
		h.At(ctx, step, attemptID)
	}
}

func (h Hooks) effect(ctx context.Context, attemptID string, from attempt.State, e attempt.Event, effect attempt.Effect) {
	if h.Effect != nil {
		h.Effect(ctx, attemptID, from, e, effect)
	}
}
