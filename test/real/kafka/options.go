package kafka

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed server.properties
var template string

// Options say which cluster is wanted.
type Options struct {
	Brokers    int               // 1 or 3; 0 is 1
	Properties map[string]string // broker settings over those of server.properties
}

// node is one broker's place.
type node struct {
	id         int
	port       int
	controller int
	home       string
}

func (n node) addr() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

func (n node) file() string { return filepath.Join(n.home, "server.properties") }

// properties fills in the template. A setting that is given twice counts the last time, so the extra ones go last.
func properties(n node, nodes []node, extra map[string]string) string {
	var voters []string
	for _, other := range nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", other.id, other.controller))
	}
	var text strings.Builder
	text.WriteString(strings.NewReplacer(
		"@NODE@", strconv.Itoa(n.id),
		"@VOTERS@", strings.Join(voters, ","),
		"@PORT@", strconv.Itoa(n.port),
		"@CONTROLLER_PORT@", strconv.Itoa(n.controller),
		"@DIR@", n.home,
		"@REPLICAS@", strconv.Itoa(len(nodes)),
		"@IN_SYNC@", strconv.Itoa(inSync(len(nodes))),
	).Replace(template))
	var keys []string
	for key := range extra {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		text.WriteString(key + "=" + extra[key] + "\n")
	}
	return text.String()
}

func inSync(brokers int) int {
	if brokers > 1 {
		return 2
	}
	return 1
}
