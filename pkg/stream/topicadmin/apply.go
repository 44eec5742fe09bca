package topicadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/stream"
)

// Options are what an installation decides and the description leaves open. The zero value takes the broker's defaults.
type Options struct {
	Replicas  int16 // of new topics; 0 is the broker's default
	MinInSync int   // replicas that have to have a record before it is acknowledged; 0 leaves it to the broker
}

// ErrConflict is wrapped by Apply's error if the cluster has what can't be changed. Nothing was changed then.
var ErrConflict = errors.New("topics are there in another form")

// Diff compares the cluster with the description.
func Diff(ctx context.Context, cfg stream.Config, deps stream.Deps, specs []Spec, opts Options) (Plan, error) {
	admin, err := connect(cfg, deps)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	return diff(ctx, admin, cfg, specs, opts)
}

// Apply creates the topics that are missing and changes the settings that differ, and returns what it did. Everybody may run it, also
// at the same time.
func Apply(ctx context.Context, cfg stream.Config, deps stream.Deps, specs []Spec, opts Options) (Plan, error) {
	admin, err := connect(cfg, deps)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	plan, err := diff(ctx, admin, cfg, specs, opts)
	if err != nil {
		return nil, err
	}
	if c := plan.Conflicts(); len(c) > 0 {
		return plan, fmt.Errorf("applying topics: %w:\n%s", ErrConflict, c)
	}
	for _, s := range specs {
		if err := apply(ctx, admin, cfg.Topic(s.Name), s, plan, opts); err != nil {
			return plan, fmt.Errorf("applying topic %s: %w", cfg.Topic(s.Name), err)
		}
	}
	return plan, settled(ctx, admin, cfg, specs)
}

func connect(cfg stream.Config, deps stream.Deps) (*kadm.Client, error) {
	deps.Tracer, deps.Registry = nil, nil
	cl, err := stream.NewClient(cfg, deps, "topics", kgo.MetadataMinAge(50*time.Millisecond)) // a topic just made is looked up at once
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(cl), nil
}

func (s Spec) settings(opts Options) map[string]string {
	out := s.Configs()
	if opts.MinInSync > 0 {
		out["min.insync.replicas"] = strconv.Itoa(opts.MinInSync)
	}
	return out
}

func diff(ctx context.Context, admin *kadm.Client, cfg stream.Config, specs []Spec, opts Options) (Plan, error) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = cfg.Topic(s.Name)
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("comparing topics: %w", err)
	}
	var plan Plan
	var present []string
	for _, s := range specs {
		name := cfg.Topic(s.Name)
		d, ok := details[name]
		switch {
		case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			plan = append(plan, Difference{Topic: name, Kind: Missing, Want: fmt.Sprintf("%d partitions, %v", s.Partitions, s.settings(opts))})
			continue
		case d.Err != nil:
			return nil, fmt.Errorf("comparing topic %s: %w", name, d.Err)
		case len(d.Partitions) != int(s.Partitions):
			plan = append(plan, Difference{name, Conflict, "partitions", strconv.Itoa(len(d.Partitions)), strconv.Itoa(int(s.Partitions))})
		}
		present = append(present, name)
	}
	if len(present) > 0 {
		configs, err := admin.DescribeTopicConfigs(ctx, present...)
		if err != nil {
			return nil, fmt.Errorf("comparing topics: %w", err)
		}
		for _, s := range specs {
			if name := cfg.Topic(s.Name); slices.Contains(present, name) {
				more, err := compare(configs, name, s.settings(opts))
				if err != nil {
					return nil, fmt.Errorf("comparing topic %s: %w", name, err)
				}
				plan = append(plan, more...)
			}
		}
	}
	slices.SortStableFunc(plan, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return plan, nil
}

func compare(configs kadm.ResourceConfigs, name string, want map[string]string) (Plan, error) {
	var plan Plan
	rc, err := configs.On(name, nil)
	if err != nil {
		return nil, err
	}
	if rc.Err != nil {
		return nil, rc.Err
	}
	have := map[string]*kadm.Config{}
	for i := range rc.Configs {
		c := &rc.Configs[i]
		have[c.Key] = c
	}
	for key, value := range want {
		var h string
		if c := have[key]; c != nil {
			h = c.MaybeValue()
		}
		if h != value {
			plan = append(plan, Difference{name, Setting, key, cmp.Or(h, "not set"), value})
		}
	}
	for key, c := range have {
		if _, ours := want[key]; !ours && c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			plan = append(plan, Difference{Topic: name, Kind: Unmanaged, Key: key, Have: c.MaybeValue()})
		}
	}
	return plan, nil
}

func apply(ctx context.Context, admin *kadm.Client, name string, s Spec, plan Plan, opts Options) error {
	var changes []kadm.AlterConfig
	for _, d := range plan {
		if d.Topic != name {
			continue
		}
		switch d.Kind {
		case Missing:
			configs := map[string]*string{}
			for k, v := range s.settings(opts) {
				configs[k] = &v
			}
			replicas := opts.Replicas
			if replicas == 0 {
				replicas = -1
			}
			_, err := admin.CreateTopic(ctx, s.Partitions, replicas, configs, name)
			if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) { // somebody else is applying, too
				return err
			}
		case Setting:
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: d.Key, Value: &d.Want})
		case Conflict, Unmanaged: // not ours to touch
		}
	}
	if len(changes) == 0 {
		return nil
	}
	responses, err := admin.AlterTopicConfigs(ctx, changes, name)
	if err != nil {
		return err
	}
	for _, r := range responses {
		if r.Err != nil {
			return errors.Join(r.Err, errors.New(r.ErrMessage))
		}
	}
	return nil
}

// settled waits until every partition has a leader: a cluster answers before that.
func settled(ctx context.Context, admin *kadm.Client, cfg stream.Config, specs []Spec) error {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = cfg.Topic(s.Name)
	}
	for {
		details, err := admin.ListTopics(ctx, names...)
		if err == nil {
			if err = details.Error(); err == nil {
				err = leaders(details)
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the topics' leaders: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func leaders(details kadm.TopicDetails) error {
	for _, d := range details {
		for _, p := range d.Partitions {
			if p.Err != nil || p.Leader < 0 {
				return fmt.Errorf("%s[%d] has no leader: %w", p.Topic, p.Partition, cmp.Or(p.Err, error(kerr.LeaderNotAvailable)))
			}
		}
	}
	return nil
}
