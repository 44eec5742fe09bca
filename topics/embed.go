// Package topics is the contract of the Kafka topics as data: a YAML per topic, a JSON Schema per event, samples that must decode for
// ever, and an AsyncAPI document made from them. Nothing here is code; pkg/stream/topicadmin loads and applies it.
package topics

import "embed"

//go:generate go test ../pkg/stream/contracts -run TestGeneratedFiles -update

// FS holds the topics' YAML files in its root, the schemas in schema and the samples in samples/v1.
//
//go:embed *.yaml schema/*.json samples/v1/*.json
var FS embed.FS
