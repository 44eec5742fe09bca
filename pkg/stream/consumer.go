package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrFenced is wrapped by Run's error when another process uses our identity in the group. Coming back would only throw that one out.
var ErrFenced = errors.New("another instance has taken our place in the consumer group")

// LossPolicy says what to do when records that were not read yet are gone.
type LossPolicy string

// The policies. Either way the exact range is logged and counted.
const (
	LossStop   LossPolicy = "stop"   // Run ends with a *LossError: a person decides
	LossResume LossPolicy = "resume" // go on with the oldest record that is left
)

// LossError tells of records that retention took before they were read.
type LossError struct {
	Topic     string
	Partition int32
	From, To  int64 // offsets From up to but not including To are gone
}

// Error says which records are gone.
func (e *LossError) Error() string {
	return fmt.Sprintf("%s[%d]: records %d to %d were deleted before they were read", e.Topic, e.Partition, e.From, e.To-1)
}

// ConsumerConfig says what a group member reads and how it keeps its place.
type ConsumerConfig struct {
	Group  string   `yaml:"group" doc:"consumer group, without prefix"`
	Topics []string `yaml:"-"`

	OnLoss   LossPolicy `yaml:"onLoss" doc:"stop or resume when records were deleted before they were read"`
	StartEnd bool       `yaml:"startAtEnd" doc:"a group without offsets starts at the newest record instead of the oldest"`

	// MaxSpan does not count what is finished and waits behind a slow one to be committed: that may be a hundred times as much.
	MaxSpan int `yaml:"maxSpan" doc:"records of a partition that may be unfinished; then it is paused"`
	// MaxHeldBytes keeps memory bounded when records are large and whoever takes them is away.
	MaxHeldBytes int64         `yaml:"maxHeldBytes" doc:"bytes of a partition's unfinished records; then it is paused"`
	MaxPoll      int           `yaml:"maxPoll" doc:"records taken over at once"`
	CommitEvery  time.Duration `yaml:"commitEvery" doc:"how often finished offsets are committed"`

	SessionTimeout   time.Duration `yaml:"sessionTimeout" doc:"silence after which the group gives our partitions to others"`
	HeartbeatEvery   time.Duration `yaml:"heartbeatEvery" doc:"how often we tell the group that we live"`
	RebalanceTimeout time.Duration `yaml:"rebalanceTimeout" doc:"how long a member may take to hand its partitions over"`
	InstanceID       string        `yaml:"instanceId" doc:"fixed name of this member: it keeps its partitions over a restart within the session timeout"`
	ServerBalanced   bool          `yaml:"serverBalanced" doc:"let the broker assign partitions (KIP-848, Kafka 4.0 or newer)"`
}

// DefaultConsumerConfig returns the settings for a group.
func DefaultConsumerConfig(group string, topics ...string) ConsumerConfig {
	return ConsumerConfig{
		Group: group, Topics: topics, OnLoss: LossStop,
		MaxSpan: 10_000, MaxHeldBytes: 64 << 20, MaxPoll: 1000, CommitEvery: time.Second,
		SessionTimeout: 45 * time.Second, HeartbeatEvery: 3 * time.Second, RebalanceTimeout: 60 * time.Second,
	}
}

// Validate says everything that is wrong with the settings.
func (c ConsumerConfig) Validate() error {
	var errs []error
	if c.Group == "" {
		errs = append(errs, errors.New("group: no name"))
	}
	if len(c.Topics) == 0 {
		errs = append(errs, errors.New("topics: none given"))
	}
	if c.OnLoss != LossStop && c.OnLoss != LossResume {
		errs = append(errs, fmt.Errorf("onLoss %q: want stop or resume", c.OnLoss))
	}
	if c.MaxSpan < 1 || c.MaxPoll < 1 || c.MaxHeldBytes < 1 {
		errs = append(errs, errors.New("maxSpan, maxHeldBytes and maxPoll must be at least 1"))
	}
	if c.CommitEvery <= 0 || c.SessionTimeout <= 0 || c.HeartbeatEvery <= 0 || c.RebalanceTimeout <= 0 {
		errs = append(errs, errors.New("commitEvery, sessionTimeout, heartbeatEvery and rebalanceTimeout must be positive"))
	}
	return errors.Join(errs...)
}

// Processor works on one partition for as long as this process owns it. All calls come from one goroutine of the partition.
type Processor interface {
	// Process takes records in order. It may hand them to others and return; it may also block, which holds up this partition
	// alone. Each record is finished by Partition.Done, in any order. The context ends when the partition goes. An error ends the
	// whole consumer: what was not done is read again by the next one.
	Process(ctx context.Context, recs []*kgo.Record) error
	// Close is called after the context has ended. When it returns, nobody works on the partition any more. It has to be quick:
	// the group waits for it.
	Close()
}

// Assign makes the Processor of a partition that was just given to us. It runs on the partition's own goroutine and may take its time
// (to open a ledger, say); records wait meanwhile.
type Assign func(ctx context.Context, p *Partition) (Processor, error)

// Consumer is one member of a consumer group.
type Consumer struct {
	cfg    Config
	deps   Deps
	group  ConsumerConfig
	assign Assign
	m      *consumerMetrics
	said   *slog.Logger // for what may come again and again

	mu     sync.Mutex
	client *kgo.Client   // of the running session
	ready  chan struct{} // closed once client is set: the group's callbacks may come before that
	parts  map[partitionKey]*Partition
	fatal  error
	stop   context.CancelFunc
	lost   int64

	commitMu sync.Mutex // one commit at a time, none while partitions are handed over
}

type partitionKey struct {
	topic string // on the cluster
	id    int32
}

// NewConsumer checks the settings. Nothing happens before Run.
func NewConsumer(cfg Config, deps Deps, group ConsumerConfig, assign Assign) (*Consumer, error) {
	if err := errors.Join(cfg.Validate(), group.Validate()); err != nil {
		return nil, fmt.Errorf("consumer settings: %w", err)
	}
	return &Consumer{
		cfg: cfg, deps: deps, group: group, assign: assign,
		m: newConsumerMetrics(deps.Registry, group.Group), said: deps.Chatter(), parts: map[partitionKey]*Partition{},
	}, nil
}

// Run consumes until the context ends (nil), or until something happens that needs a new process or a person: a Processor's error, a
// *LossError, ErrFenced. Finished records are committed before it returns, others are not.
func (c *Consumer) Run(ctx context.Context) error {
	for {
		again, err := c.session(ctx)
		if !again || ctx.Err() != nil {
			return err
		}
		c.deps.log().WarnContext(ctx, "rebuilding the kafka client", "group", c.group.Group, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func (c *Consumer) session(parent context.Context) (again bool, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	c.mu.Lock()
	c.ready, c.stop, c.fatal = make(chan struct{}), cancel, nil
	c.mu.Unlock()
	dial := newDialer(c.cfg, c.deps)
	dial.patience, dial.hurry = c.group.SessionTimeout/2, ctx.Done() // who waits longer is thrown out of the group meanwhile
	cl, err := newClient(c.cfg, c.deps, dial, c.group.Group+"-consumer", c.groupOpts()...)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	c.client = cl
	close(c.ready)
	c.mu.Unlock()

	var bg sync.WaitGroup
	bg.Go(func() { c.commitLoop(ctx) })
	again = c.poll(ctx, cl)
	cancel()
	bg.Wait()
	c.release(c.owned(), true)
	cl.CloseAllowingRebalance()

	c.mu.Lock()
	defer c.mu.Unlock()
	return again, c.fatal
}

// fail ends the session with an error. The first one counts.
func (c *Consumer) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fatal == nil {
		c.fatal = err
	}
	if c.stop != nil {
		c.stop()
	}
}

// poll hands records to their partitions. It blocks for nothing but the broker: a slow partition is paused, not waited for, so the
// group never takes us for dead. Rebalances are held up only between the poll and the hand-over, so that no record of an older
// assignment slips into a newer one.
func (c *Consumer) poll(ctx context.Context, cl *kgo.Client) (again bool) {
	for {
		fetches := cl.PollRecords(ctx, c.group.MaxPoll)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			cl.AllowRebalance()
			return false
		}
		for _, e := range fetches.Errors() {
			if c.fetchError(ctx, cl, e) {
				again = true
			}
		}
		fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
			if len(fp.Records) > 0 {
				if p := c.partition(partitionKey{fp.Topic, fp.Partition}); p != nil {
					p.deliver(fp.Records)
				}
			}
		})
		cl.AllowRebalance()
		if again {
			return true
		}
	}
}

func (c *Consumer) kafka() *kgo.Client {
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	<-ready
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

func (c *Consumer) partition(k partitionKey) *Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[k]
}

func (c *Consumer) owned() []*Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Partition, 0, len(c.parts))
	for _, p := range c.parts {
		out = append(out, p)
	}
	return out
}

// Assigned returns how many partitions are ours, and Lost how many records were found deleted before they were read.
func (c *Consumer) Assigned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parts)
}

// Lost returns how many records were deleted before this process read them. A health check should not be green if it is not zero.
func (c *Consumer) Lost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
