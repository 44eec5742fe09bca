// Package lifecycle starts and stops a service in one way.
//
// A service is built by its New, which wires straight down and registers a named stop after each step that holds
// something open. Start sets it going; Stop runs the stops last-in-first-out, each one bounded, all together bounded,
// and joins what went wrong. Run ties that to a context, and SignalContext ties the context to SIGINT and SIGTERM.
//
// The package logs nothing and knows no service: errors are returned, and the caller decides what to say of them.
package lifecycle
