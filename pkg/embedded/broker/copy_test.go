package broker_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/embedded/broker"
)

// look lists everything in a folder with its size and time.
func look(t *testing.T, dir string) map[string]string {
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

// values reads all of a topic.
func values(t *testing.T, addrs []string, topic string, n int) []string {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out []string
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { out = append(out, string(r.Value)) })
	}
	return out
}

func TestACopyIsReadAndItsSourceStaysAsItIs(t *testing.T) {
	cfg := broker.Default()
	cfg.Addr, cfg.DataDir = "127.0.0.1:0", t.TempDir()
	b, err := broker.Start(t.Context(), cfg, nil)
	require.NoError(t, err)
	defer func() { _ = b.Stop(context.Background()) }()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer cl.Close()
	retention := "1000" // what a broker would delete for its age is still wanted
	_, err = kadm.NewClient(cl).CreateTopics(t.Context(), 4, 1, map[string]*string{"retention.ms": &retention}, "wanted", "other")
	require.NoError(t, err)
	// Only partitions 1 and 3 have records, and so a folder.
	require.NoError(t, cl.ProduceSync(t.Context(),
		&kgo.Record{Topic: "wanted", Partition: 1, Value: []byte("a"), Timestamp: time.Now().Add(-time.Hour)},
		&kgo.Record{Topic: "wanted", Partition: 3, Value: []byte("b")},
		&kgo.Record{Topic: "other", Partition: 0, Value: []byte("c")},
	).FirstErr())

	_, err = broker.OpenCopy(t.Context(), cfg.DataDir, []string{"wanted"}, nil)
	require.ErrorIs(t, err, broker.ErrInUse)
	require.NoError(t, b.Stop(t.Context()))

	before := look(t, cfg.DataDir)
	c, err := broker.OpenCopy(t.Context(), cfg.DataDir, []string{"wanted", "never made"}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, values(t, c.Addrs(), "wanted", 2))
	require.NoError(t, c.Stop(t.Context()))
	require.NoError(t, c.Stop(t.Context()), "twice is once")
	require.Equal(t, before, look(t, cfg.DataDir))

	again, err := broker.Start(t.Context(), cfg, nil)
	require.NoError(t, err, "the copy gave the folder free")
	require.NoError(t, again.Stop(t.Context()))
}

func TestACopyOfNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for name, dir := range map[string]string{"an empty folder": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "no")} {
		t.Run(name, func(t *testing.T) {
			_, err := broker.OpenCopy(t.Context(), dir, []string{"a"}, nil)
			require.ErrorIs(t, err, broker.ErrNoData)
		})
	}
	bad := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(bad, "kafka"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bad, "kafka", "meta.json"), []byte("{"), 0o600))
	_, err := broker.OpenCopy(t.Context(), bad, []string{"a"}, nil)
	require.ErrorContains(t, err, "meta.json")
	left, err := filepath.Glob(filepath.Join(temp, "pointsman-copy-*"))
	require.NoError(t, err)
	require.Empty(t, left, "a copy that could not be used is removed")
}
