package router_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// child is a router in a process of its own.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
}

func (b *bench) child() *child {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	c := &child{t: b.t, cmd: exec.CommandContext(context.Background(), self)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(b.broker.Config.Brokers, ","),
		childEnv+"_PREFIX="+b.broker.Config.Prefix, childEnv+"_POLICY="+b.policy)
	c.cmd.Stderr = os.Stderr
	if !testing.Verbose() {
		c.cmd.Stderr = nil
	}
	require.NoError(b.t, c.cmd.Start())
	b.t.Cleanup(c.kill)
	return c
}

func (c *child) signal(s syscall.Signal) { require.NoError(c.t, c.cmd.Process.Signal(s)) }

// kill ends the process as it stands.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// kinds are the decisions about the first attempt of each Task, in the order of the log.
func (b *bench) kinds() map[string][]event.DecisionKind {
	out := map[string][]event.DecisionKind{}
	for _, rec := range b.broker.Records(b.t, event.TopicDecisions) {
		var d event.RouteDecision
		require.NoError(b.t, json.Unmarshal(rec.Value, &d))
		if d.Attempt == 1 && d.Task.Tenant == "support" {
			out[d.TaskID] = append(out[d.TaskID], d.Kind)
		}
	}
	return out
}

// rebuilt folds a partition's budgets from the start of its log, or from the committed checkpoint.
func (b *bench) rebuilt(partition int32, from ledger.Anchor, forget time.Time) (snapshot string, s *budget.Sessions) {
	s = budget.NewSessions(time.Hour)
	f := ledger.NewFold(from, ledger.WithState(s))
	for _, rec := range b.broker.Records(b.t, event.TopicBudgetState) {
		if rec.Partition != partition || rec.Offset < from.Offset {
			continue
		}
		r, err := ledger.Decode(rec.Value)
		require.NoError(b.t, err)
		f.Apply(rec.Offset, rec.Timestamp, r)
	}
	f.Forget(forget)
	data, err := s.Snapshot()
	require.NoError(b.t, err)
	return string(data), s
}

// checkpoint is where a new owner of a partition begins.
func (b *bench) checkpoint(partition int32) (a ledger.Anchor) {
	cl := b.broker.Client(b.t)
	defer cl.Close()
	offsets, err := kadm.NewClient(cl).FetchOffsets(b.t.Context(), b.broker.Config.Group(event.TopicBudgetState+"-ledger"))
	require.NoError(b.t, err)
	if o, ok := offsets.Lookup(b.broker.Config.Topic(event.TopicBudgetState), partition); ok {
		require.NoError(b.t, json.Unmarshal([]byte(o.Metadata), &a))
	}
	return a
}
