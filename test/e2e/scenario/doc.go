// Package scenario holds what is played on a whole system, on whatever broker it stands: test/e2e plays it on the embedded one,
// test/e2e/real on Apache Kafka.
package scenario
