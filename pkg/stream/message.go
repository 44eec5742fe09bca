package stream

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
)

// Message is an event to be written, in CloudEvents binary mode.
type Message struct {
	Topic   string // without prefix
	Key     string
	Type    event.Type
	ID      string // deterministic: a repeat after a crash has to be recognised by it
	Source  string // empty: the producer's own
	Subject string
	Time    time.Time
	Data    []byte // JSON; nil is a tombstone
	// Fresh says that a marshaler has just written Data, so that it need not be read once more to see that it is JSON.
	Fresh   bool
	Headers []kgo.RecordHeader

	// Partition is used only by writers that choose it themselves (the ledger). It is ignored elsewhere.
	Partition int32
}

// mostHeaders is how many headers Encode writes, and room for the trace's.
const mostHeaders = 7 + 2

// Encode turns a message into a record. The same message gives the same bytes.
func (c Config) Encode(m Message) (*kgo.Record, error) {
	switch {
	case m.Topic == "":
		return nil, fmt.Errorf("encoding %s: no topic", m.Type)
	case m.Key == "":
		// A keyless record would land on any partition, and a real broker refuses it on a compacted topic.
		return nil, fmt.Errorf("encoding %s for %s: no key", m.Type, m.Topic)
	case m.Data != nil && !m.Fresh && !isJSON(m.Data):
		return nil, fmt.Errorf("encoding %s for %s: data is not JSON", m.Type, m.Topic)
	}
	rec := &kgo.Record{
		Topic: c.Topic(m.Topic), Partition: m.Partition, Key: []byte(m.Key), Value: m.Data,
		Headers: make([]kgo.RecordHeader, 0, mostHeaders+len(m.Headers)),
	}
	add := func(name, value string) {
		if value != "" {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	add(headerSpecVersion, specVersion)
	add(headerType, string(m.Type))
	add(headerID, m.ID)
	source := m.Source
	if source == "" {
		source = c.ClientID
	}
	add(headerSource, source)
	add(headerSubject, m.Subject)
	if !m.Time.IsZero() {
		add(headerTime, m.Time.UTC().Format(time.RFC3339Nano))
	}
	if m.Data != nil {
		add(headerContentType, "application/json")
	}
	rec.Headers = append(rec.Headers, m.Headers...)
	return rec, nil
}
