// Package openapi holds the description of the intake's HTTP interface: OpenAPI 3.1, written by hand, served as YAML and
// as JSON. The intake's tests hold it against the routes and the Go types.
package openapi

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var source []byte

// YAML is the description as it was written.
func YAML() []byte { return source }

// JSON is the same as JSON. It panics on a text that is no YAML: that is a mistake in the program, and any test that asks
// for it finds it.
var JSON = sync.OnceValue(func() []byte {
	data, err := yaml.YAMLToJSON(source)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return data
})
