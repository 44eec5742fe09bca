// Package supervise keeps one child process alive: it starts it, waits until it is ready, starts it
// again with growing pauses when it dies, and ends it.
//
// A child lives no longer than its parent, even one killed by SIGKILL: the kernel signals the child
// when the parent dies, and the child's standard input, a pipe that the parent holds open, ends.
// Children are addressed only by the process id that this package started.
//
// What the child does, and how it says that it is ready, is left to the caller.
package supervise
