package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/pointsman/record"
	"github.com/pointsman/pointsman/services/router"
)

// recorder is a router on an embedded broker with a data folder, that decides a generated workload.
type recorder struct {
	t      *testing.T
	dir    string
	broker *broker.Broker
	kafka  stream.Config
	client *kgo.Client
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t, dir: t.TempDir()}
	cfg := broker.Default()
	cfg.Addr, cfg.DataDir = "127.0.0.1:0", r.dir
	b, err := broker.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Stop(context.Background()) })
	r.broker, r.kafka = b, stream.DefaultConfig()
	r.kafka.Brokers = b.Addrs()
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	_, err = topicadmin.Apply(t.Context(), r.kafka, stream.Deps{}, specs, topicadmin.Options{})
	require.NoError(t, err)
	r.client, err = kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers...), kgo.DefaultProduceTopic(event.TopicRequests), kgo.ProducerLinger(5*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(r.client.Close)
	return r
}

// decide has a real router decide n Tasks while the clusters' signals change under it, and returns how many decisions there are.
func (r *recorder) decide(n int) int {
	t := r.t
	cfg := router.Default()
	cfg.Kafka, cfg.Telemetry.Admin.Address, cfg.HTTP.Address = r.kafka, "", ""
	cfg.History.Addr = []string{"127.0.0.1:1"} // there is no history: that is a fact like any other
	cfg.Profiles.LookupDeadline = 5 * time.Millisecond
	quiet := telemetry.Default("")
	require.NoError(t, quiet.Log.Level.UnmarshalText([]byte("warn")))
	tel, err := telemetry.New(t.Context(), quiet, telemetry.Options{Service: "router", Output: io.Discard})
	require.NoError(t, err)
	defer func() { require.NoError(t, tel.Stop(context.Background())) }()
	app, err := router.New(t.Context(), cfg, tel)
	require.NoError(t, err)
	stopSignals := r.signals()
	defer stopSignals()
	require.NoError(t, app.Start(t.Context()))
	defer func() { require.NoError(t, app.Stop(context.Background())) }()
	arrivals, err := workload.Generate(workload.Options{Count: n, Seed: 7, Prefix: "rec"})
	require.NoError(t, err)
	for _, a := range arrivals {
		rec, err := publish.Record(a)
		require.NoError(t, err)
		r.client.Produce(t.Context(), rec, nil)
	}
	require.NoError(t, r.client.Flush(t.Context()))
	admin := kadm.NewClient(r.client)
	require.Eventually(t, func() bool {
		return ends(t, admin, event.TopicDecisions) >= n && ends(t, admin, event.TopicInputs) >= n
	},
		3*time.Minute, 50*time.Millisecond)
	require.Equal(t, ends(t, admin, event.TopicDecisions), ends(t, admin, event.TopicInputs))
	return ends(t, admin, event.TopicDecisions)
}

func ends(t *testing.T, admin *kadm.Client, topic string) int {
	listed, err := admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	n := 0
	listed.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
	return n
}

// signals publishes ever other queues of the two pools, until it is stopped.
func (r *recorder) signals() (stop func()) {
	p, err := stream.NewProducer(r.kafka, stream.Deps{}, "signals")
	require.NoError(r.t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	send := func() {
		now := time.Now().UTC()
		for _, cluster := range []string{"interactive", "batch"} {
			o := signal.Observation{Cluster: cluster, Source: "test", At: now, Values: map[signal.Name]signal.Value{}}
			for name, v := range map[signal.Name]float64{
				signal.Healthy: 1, signal.Ready: 1, signal.Slots: 4, signal.Running: float64(rng.IntN(5)), signal.Queued: float64(rng.IntN(8)),
				signal.EstWaitMs: rng.Float64() * 20000,
			} {
				o.Values[name] = signal.Of(v, signal.Count, "test", now)
			}
			data, err := event.Marshal(o)
			if err == nil {
				err = p.Send(context.Background(), stream.Message{
					Topic: event.TopicSignals, Key: cluster + "/test", Type: event.ClusterObserved, ID: fmt.Sprint(cluster, now.UnixNano()), Time: now, Data: data,
				})
			}
			if err != nil {
				r.t.Error(err)
			}
		}
	}
	send()
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(30 * time.Millisecond):
				send()
			}
		}
	})
	return func() { close(end); wg.Wait(); p.Close() }
}

// files are the names, sizes and times of everything in a folder.
func files(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		out[path] = fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode())
		return err
	}))
	return out
}

func report(t *testing.T, out string) replay.Report {
	var rep replay.Report
	require.NoError(t, json.Unmarshal([]byte(out), &rep), out)
	return rep
}

// recordedTasks is a number at which a difference of one in a thousand shows.
const recordedTasks = 10_000

// TestReplay is the check of the whole: ten thousand decisions of a real router, with queues that change and budgets that run
// out, come out the same byte for byte with their own policy, and with another one exactly those change that must.
func TestReplay(t *testing.T) {
	r := newRecorder(t)
	n := r.decide(recordedTasks)
	require.GreaterOrEqual(t, n, recordedTasks)

	brokers := r.kafka.Brokers[0]
	code, out, stderr := run("replay", "--brokers", brokers, "-o", "json")
	require.Zero(t, code, stderr)
	own := report(t, out)
	require.Equal(t, n, own.Decisions)
	require.Equal(t, n, own.Identical)
	require.Equal(t, n, own.Check.Reproduced)
	require.Zero(t, own.Changed)
	require.Equal(t, replay.Gaps{}, own.Gaps)
	last := own.Last.Format(time.RFC3339Nano)
	code, out, stderr = run("replay", "--brokers", brokers, "--from", last, "-o", "json")
	require.Zero(t, code, stderr)
	require.Equal(t, 1, report(t, out).Identical, "the start is in")
	code, out, stderr = run("replay", "--brokers", brokers, "--from", "0s", "-o", "json")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no recorded decision")
	require.Zero(t, report(t, out).Decisions)

	code, _, stderr = run("replay", "--data", r.dir)
	require.Equal(t, 2, code, "the broker is running")
	require.Contains(t, stderr, "--brokers")
	require.NoError(t, r.broker.Stop(t.Context()))
	before := files(t, r.dir)

	same := filepath.Join(t.TempDir(), "same.yaml")
	require.NoError(t, os.WriteFile(same, policies.Default, 0o600))
	code, out, stderr = run("replay", "--data", r.dir, "--policy", same, "--max-changed", "0", "-o", "json")
	require.Zero(t, code, stderr)
	rep := report(t, out)
	require.Equal(t, n, rep.Identical)
	require.Equal(t, n, rep.Check.Reproduced)
	require.Equal(t, replay.Gaps{}, rep.Gaps)
	require.Greater(t, len(rep.Places), 2, "a workload that all goes one way tests nothing: %v", rep.Places)

	const tenant = "tenant_03"
	text := strings.Replace(string(policies.Default), "\nrules:\n", "\nrules:\n  - name: moved-tenant\n    when: {tenant: "+tenant+"}\n    route: batch\n    reason: \"a test\"\n\n", 1)
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
	want := wanted(t, r.dir, tenant)
	require.NotZero(t, want)
	code, out, stderr = run("replay", "--data", r.dir, "--policy", changed, "-o", "json", "--max-changed", fmt.Sprint(want))
	require.Zero(t, code, stderr)
	rep = report(t, out)
	require.Equal(t, want, rep.Changed, "exactly those change that must")
	require.Equal(t, []replay.Move{{From: "interactive", To: "batch", N: want}}, rep.Moves)
	require.Equal(t, tenant, rep.Tenants[0].Name)
	require.Zero(t, rep.Tenants[1].Changed)
	require.Contains(t, strings.Join(rep.Samples[0].Why, " "), `Rule "moved-tenant" is new.`)

	told := rep.Samples[0].TaskID

	code, out, stderr = run("replay", "--data", r.dir, "--policy", changed, "--max-changed", "0.01%", "--output", "markdown", "--tenant", tenant)
	require.Equal(t, 4, code)
	require.Contains(t, stderr, "--max-changed allows")
	require.Contains(t, out, "| interactive | batch | ")

	code, out, stderr = run("explain", "--data", r.dir, "--task", told)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "Task "+told+", attempt 1, goes to interactive")
	require.Contains(t, out, "default matched", "what became of the rules is told from the recorded input")
	require.Empty(t, stderr)
	code, out, _ = run("explain", "--data", r.dir, "--task", told, "-o", "json")
	require.Zero(t, code)
	var e route.Explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	require.Equal(t, told, e.Decision.TaskID)
	require.NotEmpty(t, e.Rules)
	code, _, stderr = run("explain", "--data", r.dir, "--task", "nobody-asked")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no decision on task nobody-asked")
	code, _, _ = run("explain", "--data", r.dir, "--task", told, "SELECT 1")
	require.Equal(t, 2, code)
	require.Equal(t, before, files(t, r.dir), "the folder is not changed")
}

// wanted counts by hand which decisions a rule that sends a tenant to batch must change.
func wanted(t *testing.T, dir, tenant string) int {
	rec, err := record.OfFolder(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, rec.Close(context.Background())) }()
	n := 0
	require.NoError(t, rec.Read(t.Context(), time.Time{}, time.Time{}, record.Reader{Decision: func(_ []byte, d event.RouteDecision) {
		if d.Task.Tenant != tenant || d.Kind != event.Route || d.Cluster != "interactive" {
			return
		}
		for _, c := range d.Candidates {
			if c.Cluster == "batch" && c.Filtered == nil {
				n++
			}
		}
	}}))
	return n
}
