package stream

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
)

func headers(kv ...string) (h []kgo.RecordHeader) {
	for i := 0; i < len(kv); i += 2 {
		h = append(h, kgo.RecordHeader{Key: kv[i], Value: []byte(kv[i+1])})
	}
	return h
}

func TestDecodeModes(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 15, 0, 5e6, time.UTC)
	full := Envelope{
		ID: "1", Type: "pointsman.query.requested.v1", Source: "/s", Subject: "x", Time: at, ContentType: "application/json",
		Extensions: map[string]string{"tenant": "a"}, Data: []byte(`{"sql":"SELECT 1"}`),
	}
	binary, structured := full, full
	binary.Mode, structured.Mode = ModeBinary, ModeStructured
	for name, c := range map[string]struct {
		rec  kgo.Record
		want Envelope
	}{
		"binary": {kgo.Record{Value: full.Data, Headers: headers("ce_specversion", "1.0", "ce_id", "1", "ce_type", string(full.Type), "ce_source", "/s",
			"ce_subject", "x", "ce_time", "2026-11-30T17:15:00.005+08:00", "ce_tenant", "a", "content-type", "application/json", "traceparent", "junk")}, binary},
		"header names in capitals, as some clients write them": {kgo.Record{Value: full.Data, Headers: headers("CE_Id", "1", "CE_Type", string(full.Type), "Ce_source", "/s",
			"ce_subject", "x", "ce_time", "2026-11-30T09:15:00.005Z", "ce_tenant", "a", "Content-Type", "application/json")}, binary},
		"structured": {kgo.Record{Headers: headers("Content-Type", "Application/CloudEvents+JSON; charset=utf-8"), Value: []byte(`{"specversion":"1.0","id":"1",
			"type":"pointsman.query.requested.v1","source":"/s","subject":"x","time":"2026-11-30T09:15:00.005Z","datacontenttype":"application/json","tenant":"a",
			"data":{"sql":"SELECT 1"}}`)}, structured},
		"structured, data in base64": {kgo.Record{Headers: headers("content-type", "application/cloudevents+json"), Value: []byte(`{"specversion":"1.0","id":"1",
			"type":"pointsman.query.requested.v1","source":"/s","subject":"x","time":"2026-11-30T09:15:00.005Z","datacontenttype":"application/json","tenant":"a",
			"data_base64":"` + base64.StdEncoding.EncodeToString(full.Data) + `"}`)}, structured},
		"bare": {kgo.Record{Value: []byte(" {\"sql\":\"SELECT 1\"}\n")}, Envelope{Mode: ModeBare, Type: event.QueryRequested, Data: full.Data}},
		"bare, with headers of somebody else": {
			kgo.Record{Value: full.Data, Headers: append(headers("traceparent", ""), kgo.RecordHeader{Key: "x", Value: []byte{0xff, 0xfe}}, kgo.RecordHeader{})},
			Envelope{Mode: ModeBare, Type: event.QueryRequested, Data: full.Data},
		},
		"a type from the future": {
			kgo.Record{Value: full.Data, Headers: headers("ce_type", "pointsman.query.paused.v7")},
			Envelope{Mode: ModeBinary, Type: "pointsman.query.paused.v7", Data: full.Data},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(&c.rec, RulesFor(event.TopicRequests))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// Hand-made records that have crashed other people's consumers.
func TestDecodeFaults(t *testing.T) {
	structured := func(v string) kgo.Record {
		return kgo.Record{Headers: headers("content-type", "application/cloudevents+json"), Value: []byte(v)}
	}
	for name, c := range map[string]struct {
		topic string
		rec   kgo.Record
		want  FaultClass
	}{
		"null value":                        {event.TopicRequests, kgo.Record{}, FaultNullValue},
		"null value with headers":           {event.TopicRequests, kgo.Record{Headers: headers("ce_type", "x", "ce_id", "1")}, FaultNullValue},
		"empty value":                       {event.TopicRequests, kgo.Record{Value: []byte{}}, FaultNotJSON},
		"not JSON":                          {event.TopicRequests, kgo.Record{Value: []byte("SELECT 1")}, FaultNotJSON},
		"two values":                        {event.TopicRequests, kgo.Record{Value: []byte("{}{}")}, FaultNotJSON},
		"no type where none is assumed":     {event.TopicDecisions, kgo.Record{Value: []byte("{}")}, FaultMissingType},
		"blank type":                        {event.TopicDecisions, kgo.Record{Value: []byte("{}"), Headers: headers("ce_type", "")}, FaultMissingType},
		"type that is not text":             {event.TopicDecisions, kgo.Record{Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte{0xff}}}}, FaultMissingType},
		"time that is none":                 {event.TopicRequests, kgo.Record{Value: []byte("{}"), Headers: headers("ce_time", "yesterday")}, FaultEnvelope},
		"another specification":             {event.TopicRequests, kgo.Record{Value: []byte("{}"), Headers: headers("ce_specversion", "2.0")}, FaultEnvelope},
		"structured, null value":            {event.TopicRequests, kgo.Record{Headers: headers("content-type", "application/cloudevents+json")}, FaultNullValue},
		"structured, not JSON":              {event.TopicRequests, structured("x"), FaultNotJSON},
		"structured, an array":              {event.TopicRequests, structured("[]"), FaultNotJSON},
		"structured, no data":               {event.TopicRequests, structured(`{"type":"t"}`), FaultNullValue},
		"structured, no type":               {event.TopicRequests, structured(`{"data":{}}`), FaultMissingType},
		"structured, type is a number":      {event.TopicRequests, structured(`{"type":7,"data":{}}`), FaultEnvelope},
		"structured, base64 that is none":   {event.TopicRequests, structured(`{"type":"t","data_base64":"%"}`), FaultEnvelope},
		"structured, base64 of not JSON":    {event.TopicRequests, structured(`{"type":"t","data_base64":"eA=="}`), FaultNotJSON},
		"structured, attribute is a number": {event.TopicRequests, structured(`{"type":"t","time":5,"data":{}}`), FaultEnvelope},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(&c.rec, RulesFor(c.topic))
			var f *Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, c.want, f.Class)
			require.Error(t, errors.Unwrap(f))
		})
	}
}

func TestDecodeTombstone(t *testing.T) {
	for _, rec := range []kgo.Record{{}, {Headers: headers("ce_type", "x")}, {Headers: headers("content-type", "application/cloudevents+json")}} {
		e, err := Decode(&rec, RulesFor(event.TopicSignals))
		require.NoError(t, err)
		require.True(t, e.Tombstone)
	}
}

func TestEncodeDecode(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Prefix = "dev."
	m := Message{
		Topic: "decisions", Key: "t", Type: event.DecisionRouted, ID: "t/1", Subject: "s", Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
		Data: []byte(`{"a":1}`), Headers: headers("traceparent", "x"),
	}
	rec, err := cfg.Encode(m)
	require.NoError(t, err)
	again, err := cfg.Encode(m)
	require.NoError(t, err)
	require.Equal(t, rec, again)
	require.Equal(t, "dev.decisions", rec.Topic)
	e, err := Decode(rec, Rules{})
	require.NoError(t, err)
	require.Equal(t, Envelope{
		Mode: ModeBinary, ID: "t/1", Type: event.DecisionRouted, Source: "pointsman", Subject: "s", Time: m.Time.UTC(),
		ContentType: "application/json", Data: m.Data,
	}, e)

	for _, bad := range []Message{{Topic: "decisions", Data: []byte("{}")}, {Key: "t"}, {Topic: "x", Key: "t", Data: []byte("{")}} {
		_, err := cfg.Encode(bad)
		require.Error(t, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("ce_type", []byte("x"), "content-type", []byte("application/cloudevents+json"), []byte(`{"type":"t","data":{}}`))
	f.Add("", []byte(nil), "ce_time", []byte("x"), []byte("{}"))
	f.Fuzz(func(t *testing.T, k1 string, v1 []byte, k2 string, v2, value []byte) {
		rec := kgo.Record{Value: value, Headers: []kgo.RecordHeader{{Key: k1, Value: v1}, {Key: k2, Value: v2}}}
		e, err := Decode(&rec, RulesFor(event.TopicRequests))
		if err == nil && (e.Type == "" || e.Data == nil) {
			t.Fatalf("no error and nothing read: %+v", e)
		}
	})
}
