package contracts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
)

const kafkaBinding = "0.5.0"

// AsyncAPI returns the AsyncAPI 3 document of the topics: a channel per topic with its Kafka settings, and the messages in it with their
// headers, keys and schemas.
func AsyncAPI(specs []topicadmin.Spec, events []Event) ([]byte, error) {
	byName := map[string]Event{}
	for _, e := range events {
		byName[e.Name] = e
	}
	var channels, operations, messages yaml.MapSlice
	used := map[string]bool{}
	for _, s := range specs {
		var refs yaml.MapSlice
		for _, name := range s.Events {
			if _, ok := byName[name]; !ok {
				return nil, fmt.Errorf("topic %s: no event %q", s.Name, name)
			}
			used[name] = true
			refs = append(refs, item(name, ref("#/components/messages/"+name)))
		}
		channels = append(channels, item(s.Name, channel(s, refs)))
		operations = append(operations, operation("write", "send", s, s.Owner), operation("read", "receive", s, strings.Join(s.Readers, ", ")))
	}
	for _, e := range events {
		if !used[e.Name] {
			return nil, fmt.Errorf("event %s is in no topic", e.Name)
		}
		messages = append(messages, item(e.Name, message(e, specs)))
	}
	doc := yaml.MapSlice{
		item("asyncapi", "3.0.0"),
		item("info", yaml.MapSlice{
			item("title", "pointsman"),
			item("version", "1.0.0"),
			item("description", "Events of a query on its way from a request to an outcome. Carried as CloudEvents in binary mode; on requests also in "+
				"structured mode, and as a bare Task. Contracts only grow: readers ignore fields and values they do not know, and pass them on."),
			item("license", yaml.MapSlice{item("name", "Apache-2.0")}),
		}),
		item("defaultContentType", "application/json"),
		item("servers", yaml.MapSlice{item("kafka", yaml.MapSlice{
			item("host", "localhost:9092"),
			item("protocol", "kafka"),
			item("description", "The embedded broker of `pointsman up`, or any Kafka from 2.4 on."),
			item("bindings", yaml.MapSlice{item("kafka", yaml.MapSlice{item("bindingVersion", kafkaBinding)})}),
		})}),
		item("channels", channels),
		item("operations", operations),
		item("components", yaml.MapSlice{item("messages", messages), item("messageTraits", yaml.MapSlice{item("cloudEvent", cloudEvent())})}),
	}
	out, err := yaml.MarshalWithOptions(doc, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("writing the AsyncAPI document: %w", err)
	}
	return append([]byte("# Made from topics/*.yaml and the payload types by `go generate ./topics`. Do not edit.\n"), out...), nil
}

func item(key string, value any) yaml.MapItem { return yaml.MapItem{Key: key, Value: value} }

func ref(to string) yaml.MapSlice { return yaml.MapSlice{item("$ref", to)} }

func channel(s topicadmin.Spec, messages yaml.MapSlice) yaml.MapSlice {
	settings := yaml.MapSlice{item("cleanup.policy", []string{string(s.Cleanup)})}
	for _, key := range []string{"retention.ms", "delete.retention.ms", "max.message.bytes"} {
		if value, ok := s.Configs()[key]; ok {
			n, _ := strconv.ParseInt(value, 10, 64)
			settings = append(settings, item(key, n))
		}
	}
	out := yaml.MapSlice{
		item("address", s.Name),
		item("title", s.Name),
		item("description", s.Description),
	}
	if len(messages) > 0 {
		out = append(out, item("messages", messages))
	}
	return append(out,
		item("bindings", yaml.MapSlice{item("kafka", yaml.MapSlice{
			item("topic", s.Name),
			item("partitions", s.Partitions),
			item("topicConfiguration", settings),
			item("bindingVersion", kafkaBinding),
		})}),
		item("x-key", s.Key),
		item("x-timestamp", string(s.Timestamp)),
		item("x-owner", s.Owner),
		item("x-readers", s.Readers),
	)
}

func operation(verb, action string, s topicadmin.Spec, who string) yaml.MapItem {
	return item(s.Name+"."+verb, yaml.MapSlice{
		item("action", action),
		item("channel", ref("#/channels/"+s.Name)),
		item("summary", strings.ToUpper(verb[:1])+verb[1:]+" "+s.Name+": "+who+"."),
	})
}

func message(e Event, specs []topicadmin.Spec) yaml.MapSlice {
	var keys []string
	for _, s := range specs {
		for _, name := range s.Events {
			if name == e.Name {
				keys = append(keys, s.Name+": "+s.Key)
			}
		}
	}
	return yaml.MapSlice{
		item("name", e.Name),
		item("title", e.Name),
		item("summary", e.Summary),
		item("contentType", "application/json"),
		item("traits", []any{ref("#/components/messageTraits/cloudEvent")}),
		item("payload", yaml.MapSlice{
			item("schemaFormat", "application/schema+json;version=draft-2020-12"),
			item("schema", ref("./schema/"+e.Name+".json")),
		}),
		item("bindings", yaml.MapSlice{item("kafka", yaml.MapSlice{
			item("key", yaml.MapSlice{item("type", "string"), item("description", strings.Join(keys, "; "))}),
			item("bindingVersion", kafkaBinding),
		})}),
	}
}

// cloudEvent is what all messages have: the headers of CloudEvents' Kafka binding in binary mode.
func cloudEvent() yaml.MapSlice {
	header := func(description string) yaml.MapSlice {
		return yaml.MapSlice{item("type", "string"), item("description", description)}
	}
	return yaml.MapSlice{
		item("headers", yaml.MapSlice{
			item("type", "object"),
			item("properties", yaml.MapSlice{
				item("ce_specversion", header("1.0")),
				item("ce_type", header("The event's type. On requests it may be missing: the value is a Task then.")),
				item("ce_id", header("The same for every repeat of the event; the first in the log counts.")),
				item("ce_source", header("Who wrote it.")),
				item("ce_time", header("When it happened, RFC 3339.")),
				item("ce_subject", header("What it is about.")),
				item("content-type", header("application/json, or application/cloudevents+json for an event in structured mode.")),
				item("traceparent", header("W3C trace context. A malformed one is ignored.")),
			}),
		}),
	}
}
