// Package statement reads just enough of a ClickHouse statement to carry it from HTTP to the
// embedded engine: where the data of an INSERT begins, which FORMAT a result is asked in, whether
// a second statement follows, what a KILL QUERY aims at.
//
// It works on tokens, so strings, quoted names, comments and heredocs never mislead it. It does not
// parse and does not judge: whether a statement is right is for the engine's own parser to say.
// It is pure: no I/O.
package statement
