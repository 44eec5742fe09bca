package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

// TestOutcomesThatTakeLessThanTheLedger: the ledger's topic takes the end, the topic of outcomes does not take the Outcome.
func TestOutcomesThatTakeLessThanTheLedger(t *testing.T) {
	b := newBench(t, 1)
	admin := kadm.NewClient(b.broker.Client(t))
	limit := "100000"
	_, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, event.TopicOutcomes)
	require.NoError(t, err)
	b.config = func(c *executor.Config) { c.Kafka.Compression = "none" }
	b.servers[interactive].on("LARGE", behaviour{rows: 300, wide: 1000})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	p := b.start()
	arrived, goOn := p.steps.stopAt(executor.StepPublished, "t1")
	b.decide(b.route("t1", "LARGE"), b.route("t2", "SELECT"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.EqualValues(t, 300, o.Result.Rows)
	require.Nil(t, o.Result.Inline)
	require.True(t, o.Result.Truncated)
	require.Equal(t, []string{"meets_sla"}, o.Reasons)
	reached(t, arrived)
	p.crash()
	b.start()
	b.committed()
	goOn()
	require.Len(t, b.outcomes()["t1"], 2, "the next owner publishes the same again, byte for byte")
	b.once()
}

func TestLargeResultGoesToAFile(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Results.Inline, c.Results.Max = 10*config.KiB, 300*config.KiB }
	b.servers[interactive].on("LARGE", behaviour{rows: 100, wide: 1000})
	b.servers[interactive].on("TOO LARGE", behaviour{rows: 1000, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"), b.route("t2", "TOO LARGE"))
	o := b.outcome("t1")
	require.Equal(t, "ndjson", o.Result.Format)
	require.EqualValues(t, 100, o.Result.Rows)
	require.True(t, o.Result.ExpiresAt.After(time.Now().Add(23*time.Hour)))
	data, err := os.ReadFile(filepath.Join(b.results, o.Result.File))
	require.NoError(t, err)
	require.Equal(t, 100, strings.Count(string(data), "\n"))
	o = b.outcome("t2")
	require.True(t, o.Result.Truncated)
	require.Less(t, o.Result.Rows, int64(1000))
	require.Equal(t, event.Succeeded, o.Status)
}

// A write is read to its end, whatever can be kept of its rows: an engine may take back what it is stopped in.
func TestAWriteIsNotCutShortByItsRows(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Results.Inline, c.Results.Max = 10*config.KiB, 300*config.KiB }
	b.servers[interactive].on("INSERT RETURNING", behaviour{rows: 1000, wide: 1000})
	b.servers[interactive].on("SELECT", behaviour{rows: 1000, wide: 1000})
	b.start()
	b.decide(b.route("t1", "INSERT RETURNING", func(d *event.RouteDecision) { d.ReadOnly = false }), b.route("t2", "SELECT"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.True(t, o.Result.Truncated)
	require.Less(t, o.Result.Rows, int64(1000))
	require.EqualValues(t, 1000, *o.Stats.ResultRows)
	require.False(t, b.servers[interactive].wasKilled("t1/1"))
	require.True(t, b.outcome("t2").Result.Truncated)
	require.True(t, b.servers[interactive].wasKilled("t2/1"), "a read is")
}

func TestInlineResultThatFitsNoTopic(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Results.Inline = 64 * config.MiB }
	b.maxBytes = func(string) int { return 1 << 20 }
	b.servers[interactive].on("LARGE", behaviour{rows: 1400, wide: 1000})
	b.servers[interactive].on("FITS", behaviour{rows: 800, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"), b.route("t2", "FITS"))
	require.Equal(t, "ndjson", b.outcome("t1").Result.Format, "the topics take a megabyte")
	o := b.outcome("t2")
	require.Equal(t, "json", o.Result.Format)
	var rows [][]any
	require.NoError(t, json.Unmarshal(o.Result.Inline, &rows))
	require.Len(t, rows, 800)
	b.committed()
}

// TestTopicsThatTakeLessThanIsBelieved has a broker whose limit is lower than the one in topics/.
func TestTopicsThatTakeLessThanIsBelieved(t *testing.T) {
	b := newBenchWith(t, 1, map[string]string{"max.message.bytes": "100000"})
	b.config = func(c *executor.Config) { c.Kafka.Compression = "none" }
	b.servers[interactive].on("LARGE", behaviour{rows: 300, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 1, o.Attempts)
	require.Equal(t, "ndjson", o.Result.Format)
	require.EqualValues(t, 300, o.Result.Rows)
	b.committed()
	b.once()
}
