package broker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

const childEnv = "POINTSMAN_TEST_BROKER_DIR"

// The test binary is also the broker that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		cfg := Default()
		cfg.Addr, cfg.DataDir = "127.0.0.1:0", dir
		b, err := Start(context.Background(), cfg, nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(b.Addrs()[0])
		select {}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

func start(t *testing.T, change func(*Config)) *Broker {
	cfg := Default()
	cfg.Addr = "127.0.0.1:0"
	if change != nil {
		change(&cfg)
	}
	b, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop(context.Background())) })
	return b
}

func client(t *testing.T, addrs []string, opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addrs...)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func createTopic(t *testing.T, c *kgo.Client, topic string, partitions int32, configs map[string]*string) {
	res, err := kadm.NewClient(c).CreateTopics(t.Context(), partitions, 1, configs, topic)
	require.NoError(t, err)
	require.NoError(t, res.Error())
}

func TestProduceAndConsume(t *testing.T) {
	b := start(t, nil)
	c := client(t, b.Addrs(), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	createTopic(t, c, "t", 3, nil)
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	recs := c.PollFetches(ctx).Records()
	require.Len(t, recs, 1)
	require.Equal(t, "v", string(recs[0].Value))
}

func TestPortInUse(t *testing.T) {
	b := start(t, nil)
	cfg := Default()
	cfg.Addr = b.Addrs()[0]
	_, err := Start(t.Context(), cfg, nil)
	require.ErrorIs(t, err, ErrInUse)
	_, port, _ := strings.Cut(cfg.Addr, ":")
	require.EqualError(t, err, "embedded broker: port "+port+" is in use; pass --kafka-addr or --free-ports, or stop the other process")
}

func TestBadConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no port":    func(c *Config) { c.Addr = "localhost" },
		"any host":   func(c *Config) { c.Addr = "0.0.0.0:9092" },
		"empty host": func(c *Config) { c.Addr = ":9092" },
		"no such":    func(c *Config) { c.Addr = "127.0.0.1:70000" },
		"too small":  func(c *Config) { c.MaxBytes = 10 },
		"no sweep":   func(c *Config) { c.Sweep = 0 },
		"no time":    func(c *Config) { c.Retention = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			change(&cfg)
			_, err := Start(t.Context(), cfg, nil)
			require.Error(t, err)
		})
	}
	require.NoError(t, Default().Validate())
}

func TestRestartKeepsTopicsRecordsAndCommits(t *testing.T) {
	dir := t.TempDir()
	same := func(c *Config) { c.DataDir = dir }
	b := start(t, same)
	_, err := Start(t.Context(), Config{Addr: "127.0.0.1:0", DataDir: dir, MaxBytes: 1 << 20, Retention: 1, Sweep: 1}, nil)
	require.ErrorIs(t, err, ErrInUse, "one process per data directory")

	c := client(t, b.Addrs())
	createTopic(t, c, "t", 2, map[string]*string{"message.timestamp.type": new("LogAppendTime")})
	produced := c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("kept")})
	require.NoError(t, produced.FirstErr())
	p := produced[0].Record.Partition
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "t", Partition: p, At: 1, LeaderEpoch: -1, Metadata: "m"})
	require.NoError(t, kadm.NewClient(c).CommitAllOffsets(t.Context(), "g", offsets))
	c.Close()
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.Stop(t.Context()), "twice is once")

	b = start(t, same)
	c = client(t, b.Addrs(), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	recs := c.PollFetches(ctx).Records()
	require.Len(t, recs, 1)
	require.Equal(t, "kept", string(recs[0].Value))
	configs, err := kadm.NewClient(c).DescribeTopicConfigs(t.Context(), "t")
	require.NoError(t, err)
	on, err := configs.On("t", nil)
	require.NoError(t, err)
	kept := map[string]string{}
	for _, config := range on.Configs {
		kept[config.Key] = config.MaybeValue()
	}
	require.Equal(t, "LogAppendTime", kept["message.timestamp.type"])
	got, err := kadm.NewClient(c).FetchOffsets(t.Context(), "g")
	require.NoError(t, err)
	o, ok := got.Lookup("t", p)
	require.True(t, ok)
	require.Equal(t, int64(1), o.At)
	require.Equal(t, "m", o.Metadata)
}

func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	child := func() (*exec.Cmd, string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		return cmd, strings.TrimSpace(line)
	}
	cmd, addr := child()
	c := client(t, []string{addr})
	createTopic(t, c, "t", 1, nil)
	for i := range 50 {
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr())
	}
	c.Close()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	_, addr = child()
	c = client(t, []string{addr})
	end, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "t")
	require.NoError(t, err)
	o, _ := end.Lookup("t", 0)
	require.Equal(t, int64(50), o.Offset)
}

func TestSizeStaysBounded(t *testing.T) {
	const bound = 4 << 20
	b := start(t, func(c *Config) { c.MaxBytes, c.Sweep = bound, 20*time.Millisecond })
	c := client(t, b.Addrs(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	createTopic(t, c, "big", 2, nil)
	createTopic(t, c, "small", 1, nil)
	createTopic(t, c, "state", 1, map[string]*string{"cleanup.policy": new("compact")})
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "small", Value: []byte("stays")}).FirstErr())
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "state", Key: []byte("k"), Value: []byte("stays")}).FirstErr())
	value := bytes.Repeat([]byte("x"), 64<<10)
	for i := range 200 { // 12.5 MiB
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "big", Key: fmt.Append(nil, i), Value: value}).FirstErr())
	}
	size := func() (n int64) {
		for _, topic := range []string{"big", "small", "state"} {
			for _, p := range b.cluster.PartitionInfos(topic) {
				n += p.NumBytes
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return size() <= bound+2*64<<10 }, 10*time.Second, 20*time.Millisecond)
	require.Greater(t, size(), int64(bound/2), "no more than needed goes")
	for _, topic := range []string{"small", "state"} {
		require.Zero(t, b.cluster.PartitionInfo(topic, 0).LogStartOffset, topic)
	}
}

func TestWaterLevel(t *testing.T) {
	require.Equal(t, int64(100), waterLevel([]int64{10, 20, 30}, 100), "all fits")
	require.Equal(t, int64(45), waterLevel([]int64{10, 500, 90}, 100))
	require.Equal(t, int64(33), waterLevel([]int64{100, 100, 100}, 100))
	require.Equal(t, int64(100), waterLevel(nil, 100))
}

// A member that dies while it waits for the others, before an answer has reached it, is missed all the same: it gets a share, and loses
// it when its session is over.
func TestAMemberThatDiesInTheDoor(t *testing.T) {
	b := start(t, nil)
	c := client(t, b.Addrs(), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.SessionTimeout(1500*time.Millisecond), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.Balancers(kgo.RoundRobinBalancer()))
	createTopic(t, c, "t", 4, nil)
	c.ForceMetadataRefresh()
	require.Eventually(t, func() bool {
		g := b.cluster.GroupInfo("g")
		return g != nil && g.State == "Stable" && g.NumAssigned() == 4
	}, 10*time.Second, 20*time.Millisecond)

	dying, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "g", "consumer", 1500, 60_000
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{"t"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "roundrobin", meta.AppendTo(nil)
	join.Protocols = append(join.Protocols, protocol)
	resp, err := join.RequestWith(t.Context(), dying)
	require.NoError(t, err)
	require.Equal(t, kerr.MemberIDRequired.Code, resp.ErrorCode)
	join.MemberID = resp.MemberID
	joining, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := join.RequestWith(joining, dying)
		answered <- err
	}()
	require.Eventually(t, func() bool { return b.cluster.GroupInfo("g").State == "PreparingRebalance" }, 5*time.Second, time.Millisecond)
	cancel()
	require.Error(t, <-answered)
	dying.Close()

	require.Eventually(t, func() bool { // it is counted in
		g := b.cluster.GroupInfo("g")
		return g.State == "Stable" && len(g.Members) == 2
	}, 10*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		g := b.cluster.GroupInfo("g")
		return g.State == "Stable" && len(g.Members) == 1 && g.NumAssigned() == 4
	}, 15*time.Second, 20*time.Millisecond)
	time.Sleep(4 * time.Second)
	require.Len(t, b.cluster.GroupInfo("g").Members, 1, "who is alive stays")
}
