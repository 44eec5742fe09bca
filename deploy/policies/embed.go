// Package policies embeds the routing policies that pointsman ships with.
package policies

import _ "embed"

// Default is the policy of `pointsman up`.
//
//go:embed default.yaml
var Default []byte
