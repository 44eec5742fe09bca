package executor

import "sync"

// retryBudget bounds the retries on one cluster by the submissions there: each submission adds a share of a retry, each retry
// takes one. A cluster that fails much would otherwise get several times its load just then.
type retryBudget struct {
	mu             sync.Mutex
	tokens         float64
	share, reserve float64
}

func newRetryBudget(share float64, reserve int) *retryBudget {
	return &retryBudget{tokens: float64(reserve), share: share, reserve: float64(reserve)}
}

// submitted counts a submission that is no retry.
func (b *retryBudget) submitted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.share, b.reserve)
}

// left says whether a retry may be made.
func (b *retryBudget) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens >= 1
}

// take counts a retry. Two that asked at once may both be made: the budget bounds a storm, not a number.
func (b *retryBudget) take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = max(b.tokens-1, 0)
}
