// Package ledger is the pure half of the claim protocol that keeps two executors from running one query twice: the records of a
// ledger partition, the fold that says which of them count, and the steps an owner has to take for each attempt.
//
// A ledger is a plain, never compacted log. An owner writes a lease with the next epoch and owns the partition if the lease stands
// when it reads it back. Every other record carries the epoch and the owner it was written under, and is void behind a newer lease.
// All readers apply the same fold, so all of them agree on which claim and which end stand, whoever wrote what and however late it
// arrived. An owner acts on a claim or an end only when it has read it back and it stands.
//
// The package does no I/O and knows no clock: offsets and times come with each record from the broker (LogAppendTime), monotonic
// readings are arguments. Reading, writing and waiting are pkg/stream's; what a payload means is the executor's or the router's.
package ledger
