package lifecycle

import "errors"

// Exit codes of every pointsman binary. A second signal exits with 128 plus its number.
const (
	ExitOK      = 0
	ExitRuntime = 1 // it ran and failed
	ExitUsage   = 2 // flags or configuration are wrong: starting it again will not help
	ExitFenced  = 3 // another instance owns the work: this one had to end, and may be started again
	ExitLimit   = 4 // a check found more than it was told to allow
)

// ErrFenced marks the end of an instance that found its ownership taken: wrap it, and the process exits with
// ExitFenced.
var ErrFenced = errors.New("fenced: another instance has taken over")

// UsageError marks an error of the one who started the program: the process exits with ExitUsage.
type UsageError struct{ Err error }

// Error is the text of the error inside.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the error inside.
func (e *UsageError) Unwrap() error { return e.Err }

// LimitError marks the finding of a check: the process exits with ExitLimit.
type LimitError struct{ Err error }

// Error is the text of the error inside.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap gives the error inside.
func (e *LimitError) Unwrap() error { return e.Err }

// ExitCode is the exit code that an error of Run stands for.
func ExitCode(err error) int {
	var usage *UsageError
	var limit *LimitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &limit):
		return ExitLimit
	case errors.Is(err, ErrFenced):
		return ExitFenced
	default:
		return ExitRuntime
	}
}
