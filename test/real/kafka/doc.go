// Package kafka starts a real Apache Kafka for a test: one broker or three, on free loopback ports, in processes of
// the test's own that it can kill, stop for a while and start again.
//
// The embedded broker is faster and is what most tests use. This one is for what only the real one shows: latency of
// acknowledgements, moves of leaders, sessions that time out, what survives a SIGKILL. Tests that use it carry the
// build tag "real" and are skipped, with a word, where Java or Maven is missing.
package kafka
