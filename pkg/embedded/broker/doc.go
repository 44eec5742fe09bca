// Package broker runs a Kafka broker inside this process, on a TCP port of its own, for people who have no Kafka at hand: kcat and any
// Kafka client can use it.
//
// It is franz-go's kfake with what a long-running program needs around it: a fixed address, a data directory that only one process
// may use, a bound on what it keeps, and clear errors. It creates no topics, that is pkg/stream/topicadmin's; it has no replication
// and no quotas, and it is no broker for production. It stores the topic setting message.timestamp.type but stamps no records:
// their time is always the producer's. Who needs the broker's clock must look at a record's timestamp type.
package broker
