// Package real plays the scenarios of test/e2e on Apache Kafka: one broker, three of which leaders are killed under load, and one that goes
// away; and attempts of three minutes.
//
// Its tests carry the build tag "real" and are run by `make test-real`; they are skipped, with a word, where Java or Maven is missing.
package real
