package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
)

type topicsCmd struct {
	kafkaFlags
	Apply topicsApplyCmd `cmd:"" help:"Create missing topics and set what differs. Deletes nothing."`
	Diff  topicsDiffCmd  `cmd:"" help:"Say where the cluster differs from what is declared; exit code 1 if it does."`
	Tail  topicsTailCmd  `cmd:"" help:"Show records."`
}

// kafkaFlags say where Kafka is.
type kafkaFlags struct {
	Brokers []string `help:"Addresses to find the cluster by." default:"127.0.0.1:9092" sep:","`
	Prefix  string   `help:"Put before every topic and group name."`
}

func (f kafkaFlags) config() stream.Config {
	c := stream.DefaultConfig()
	c.Brokers, c.Prefix, c.ClientID = f.Brokers, f.Prefix, "pointsman-cli"
	return c
}

// replicaFlags are what an installation decides.
type replicaFlags struct {
	Replicas  int16 `help:"Replicas of new topics; 0 takes the broker's default."`
	MinInSync int   `help:"Replicas that must have a record before it is acknowledged; 0 leaves it to the broker."`
}

func (f replicaFlags) options() topicadmin.Options {
	return topicadmin.Options{Replicas: f.Replicas, MinInSync: f.MinInSync}
}

type topicsApplyCmd struct{ replicaFlags }

// Run makes the topics.
func (a topicsApplyCmd) Run(ctx context.Context, s *streams, c *cli) error {
	specs, err := topicadmin.Specs()
	if err != nil {
		return err
	}
	plan, err := topicadmin.Apply(ctx, c.Topics.config(), stream.Deps{}, specs, a.options())
	if err != nil {
		return err
	}
	printPlan(s, plan)
	return nil
}

type topicsDiffCmd struct{ replicaFlags }

// Run compares.
func (d topicsDiffCmd) Run(ctx context.Context, s *streams, c *cli) error {
	specs, err := topicadmin.Specs()
	if err != nil {
		return err
	}
	plan, err := topicadmin.Diff(ctx, c.Topics.config(), stream.Deps{}, specs, d.options())
	if err != nil {
		return err
	}
	printPlan(s, plan)
	if !plan.Clean() {
		return fmt.Errorf("the cluster differs from what is declared")
	}
	return nil
}

func printPlan(s *streams, plan topicadmin.Plan) {
	text := strings.TrimSpace(plan.String())
	if text == "" {
		text = "nothing to do: the topics are as declared"
	}
	_, _ = fmt.Fprintln(s.out, text)
}

type topicsTailCmd struct {
	Topics []string      `arg:"" help:"Topics, without prefix: requests, decisions, inputs, attempts, outcomes, signals, policies, attempt-state, budget-state, slots, deadletter."`
	Since  time.Duration `help:"Show records of this long ago and newer."`
	Follow bool          `help:"Go on until you stop it." short:"f"`
	Key    string        `help:"Only records of one key, e.g. a task id."`
	Limit  int           `help:"Stop after so many records." short:"n"`
	Output string        `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// Run shows records.
func (t topicsTailCmd) Run(ctx context.Context, s *streams, c *cli) error {
	opts := topicadmin.TailOptions{Topics: t.Topics, Follow: t.Follow, Key: t.Key, Limit: t.Limit, JSON: t.Output == "json"}
	if t.Since > 0 {
		opts.Since = time.Now().Add(-t.Since)
	}
	return topicadmin.Tail(ctx, c.Topics.config(), stream.Deps{}, opts, s.out)
}
