// Package faults injects faults into the way of Tasks and checks what becomes of them: class of fault x moment x engine.
//
// Each fault hits one Task of a real executor, with a broker and a ledger of its own, on a real engine, through a gate of its own
// (only the death of an engine hits all Tasks that it has at that time). It checks what the executor promises: one Outcome per
// Task, the right one, within a bound; at most one submission per attempt, counted on the wire; at most one run of a write,
// counted in the table that it writes to. What an adapter makes of a broken network is tested in pkg/engine/enginetest, what the
// executor's states allow in pkg/attempt.
package faults
