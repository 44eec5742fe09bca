// Package stream is the way in and out of Kafka: it builds every client, carries events as CloudEvents, splits consuming into
// consumer, processor and committer, dead-letters what can't be read, and does the reading and writing for pkg/ledger.
//
// What an event means is pkg/event's and the services'. Which topics there are is data in topics/, and pkg/stream/topicadmin makes
// them so. Kafka transactions are not used: a record may be written again by a crash, has the same id then, and the first in the
// log counts. Readers are read_committed, since producers outside may use transactions.
package stream
