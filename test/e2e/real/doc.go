// Package real plays the scenarios of test/e2e on Apache Kafka: one broker, and three of which leaders are killed under load.
//
// Its tests carry the build tag "real" and are run by `make test-real`; they are skipped, with a word, where Java or Maven is missing.
package real
