// Package ledger is the pure half of the claim protocol that keeps two executors from running one query twice: the records of a
// ledger partition, the fold that says which of them count, and the steps an owner has to take for each attempt.
//
// A ledger is a plain, never compacted log. An owner writes a lease with the next epoch and owns the partition if the lease stands
// when it reads it back. Every other record carries the epoch and the owner it was written under, and is void behind a newer lease.
// All readers apply the same fold, so all of them agree on which claim and which end stand, whoever wrote what and however late it
// arrived. An owner acts on a claim or an end only when it has read it back and it stands.
//
// The Fold is what runs: pkg/stream applies it to every ledger partition, and the executor acts by its verdicts. The Driver is the
// protocol of one attempt in its smallest form, and what the tests check against all kinds of stalls, crashes and overlapping
// owners. The executor takes from it only when a look-up can be trusted; its own steps are the transitions of pkg/attempt
// under the same rules, since it also has to do with cancels, fallbacks and engines that can't answer. What the tests show of the Driver
// therefore holds for the executor as far as its steps are the same; that they are is for the executor's own crash tests to show.
//
// The package does no I/O and knows no clock: offsets and times come with each record from the broker (LogAppendTime), monotonic
// readings are arguments. Reading, writing and waiting are pkg/stream's; what a payload means is the executor's.
package ledger
