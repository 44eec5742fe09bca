package broker

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kcat is what people have at hand; what works here is what the README may promise.
func TestKcat(t *testing.T) {
	path, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed: apt-get install kcat")
	}
	b := start(t, nil)
	addr := b.Addrs()[0]
	c := client(t, b.Addrs())
	createTopic(t, c, "requests", 3, nil)
	kcat := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-b", addr}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		return string(out)
	}

	list := kcat("", "-L")
	require.Contains(t, list, `topic "requests" with 3 partitions`)

	kcat(`k1:{"sql":"SELECT 1"}`+"\n", "-P", "-t", "requests", "-p", "1", "-K", ":", "-H", "ce_type=pointsman.query.requested.v1", "-H", "ce_id=1")
	got := kcat("", "-C", "-t", "requests", "-o", "beginning", "-e", "-q", "-f", `%p %o %k %h %s\n`)
	require.Equal(t, "1 0 k1 ce_type=pointsman.query.requested.v1,ce_id=1 {\"sql\":\"SELECT 1\"}\n", got)

	require.Contains(t, kcat("", "-Q", "-t", "requests:1:0"), "requests [1] offset 0")
	require.Equal(t, got, kcat("", "-X", "auto.offset.reset=earliest", "-X", "isolation.level=read_committed", "-e", "-q",
		"-f", `%p %o %k %h %s\n`, "-G", "people", "requests"))
}
