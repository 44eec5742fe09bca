// Package executor runs what the router decided: it claims each attempt in the ledger, submits it once, follows it to its end,
// moves it on when it fails, and gives every Task exactly one Outcome.
//
// Every partition of `decisions` has its ledger, and every Task its goroutine, which walks the attempt table (pkg/attempt) and
// carries its effects out. Nothing has an effect before it was read back from the ledger, so a process may die, stall or be
// overtaken at any point: whoever has the partition next goes on from the log. Where to go is not decided here (services/router),
// nor what a failure means (pkg/failure).
package executor
