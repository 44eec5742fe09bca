package kafka

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPropertiesAreFilledIn(t *testing.T) {
	nodes := []node{{1, 20001, 20002, "/x/1"}, {2, 20003, 20004, "/x/2"}, {3, 20005, 20006, "/x/3"}}
	text := properties(nodes[1], nodes, map[string]string{"num.partitions": "9", "b": "2", "a": "1"})
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			require.NotContains(t, strings.ReplaceAll(line, "@127.0.0.1", ""), "@", "a placeholder that nothing fills in")
		}
	}
	for _, line := range []string{
		"node.id=2",
		"controller.quorum.voters=1@127.0.0.1:20002,2@127.0.0.1:20004,3@127.0.0.1:20006",
		"listeners=PLAINTEXT://127.0.0.1:20003,CONTROLLER://127.0.0.1:20004",
		"log.dirs=/x/2/data", "default.replication.factor=3", "min.insync.replicas=2",
	} {
		require.Contains(t, text, line+"\n")
	}
	require.True(t, strings.HasSuffix(text, "\na=1\nb=2\nnum.partitions=9\n"), "the extra settings come last, so they count")
	require.Contains(t, properties(nodes[0], nodes[:1], nil), "min.insync.replicas=1\n")
}
