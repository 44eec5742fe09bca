// Package topicadmin brings the topics of a cluster in line with their description in topics/, says where they differ, and shows what
// is in them. It is the only place that creates topics. It deletes nothing and changes no partition count: keys would change their
// partition, and the order of a Task's records with them.
package topicadmin

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/topics"
)

// Cleanup is what the broker does with old records.
type Cleanup string

// The clean-up policies.
const (
	Delete  Cleanup = "delete"
	Compact Cleanup = "compact"
)

// Timestamp says whose time a record carries.
type Timestamp string

// The kinds of timestamps.
const (
	Create Timestamp = "create" // the producer's
	Append Timestamp = "append" // the broker's
)

// Spec is one topic as topics/<name>.yaml describes it.
type Spec struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Key         string   `yaml:"key"`
	Events      []string `yaml:"events"` // CloudEvents types; pointsman.attempt.v1 stands for one type per state

	Partitions int32 `yaml:"partitions"`
	// Copartitioned names the topics that need the same number of partitions, so that one key lies in one partition number in all.
	Copartitioned []string `yaml:"copartitioned"`

	Cleanup            Cleanup       `yaml:"cleanup"`
	Retention          time.Duration `yaml:"retention"`
	TombstoneRetention time.Duration `yaml:"tombstoneRetention"`
	// CompactionLag is how long a compacted topic keeps every record, and not only the newest of its key.
	CompactionLag   time.Duration   `yaml:"compactionLag"`
	MaxMessageBytes config.ByteSize `yaml:"maxMessageBytes"`
	Timestamp       Timestamp       `yaml:"timestamp"`

	Owner   string   `yaml:"owner"`
	Readers []string `yaml:"readers"`
}

// asyncAPI lies among the topics' files and is made from them.
const asyncAPI = "asyncapi.yaml"

// Specs returns the topics that this program is built with, by name.
func Specs() ([]Spec, error) { return Load(topics.FS) }

// Load reads the topics' files in the root of a file system. It reports everything that is wrong at once.
func Load(fsys fs.FS) ([]Spec, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the topics: %w", err)
	}
	var specs []Spec
	var errs []error
	for _, name := range names {
		if name == asyncAPI {
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("reading the topics: %w", err)
		}
		var s Spec
		if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if name != s.Name+".yaml" {
			errs = append(errs, fmt.Errorf("%s: describes the topic %q", name, s.Name))
		}
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		specs = append(specs, s)
	}
	errs = append(errs, copartitioned(specs))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reading the topics: %w", err)
	}
	slices.SortFunc(specs, func(a, b Spec) int { return cmp.Compare(a.Name, b.Name) })
	return specs, nil
}

func (s Spec) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(s.Key != "", "key: say what the record key is")
	check(s.Partitions > 0, "partitions: must be at least 1")
	check(s.MaxMessageBytes >= 1024, "maxMessageBytes: must be at least 1 KiB")
	check(s.Cleanup == Delete || s.Cleanup == Compact, "cleanup %q: want delete or compact", s.Cleanup)
	check(s.Timestamp == Create || s.Timestamp == Append, "timestamp %q: want create or append", s.Timestamp)
	check(s.Cleanup != Delete || s.Retention > 0, "retention: how long are records kept?")
	check(s.Cleanup != Compact || s.Retention == 0, "retention: a compacted topic keeps the newest record of each key")
	check(s.Cleanup == Compact || s.CompactionLag == 0, "compactionLag: only a compacted topic has one")
	check(s.Owner != "", "owner: who writes it?")
	for _, e := range s.Events {
		ok, _ := path.Match("pointsman.*.v[0-9]", e)
		check(ok, "events: %q is not pointsman.<subject>.<past participle>.v<N>", e)
	}
	return errors.Join(errs...)
}

func copartitioned(specs []Spec) error {
	var errs []error
	for _, s := range specs {
		for _, other := range s.Copartitioned {
			i := slices.IndexFunc(specs, func(o Spec) bool { return o.Name == other })
			switch {
			case i < 0:
				errs = append(errs, fmt.Errorf("%s.yaml: copartitioned with %q, which there is not", s.Name, other))
			case specs[i].Partitions != s.Partitions:
				errs = append(errs, fmt.Errorf("%s.yaml: %d partitions, and %d in %s, which has to have as many", s.Name, s.Partitions, specs[i].Partitions, other))
			case !slices.Contains(specs[i].Copartitioned, s.Name):
				errs = append(errs, fmt.Errorf("%s.yaml: copartitioned with %s, which does not say so", s.Name, other))
			}
		}
	}
	return errors.Join(errs...)
}

// Configs returns the topic's settings as the broker names them.
func (s Spec) Configs() map[string]string {
	out := map[string]string{
		"cleanup.policy":         string(s.Cleanup),
		"max.message.bytes":      strconv.FormatInt(int64(s.MaxMessageBytes), 10),
		"message.timestamp.type": map[Timestamp]string{Create: "CreateTime", Append: "LogAppendTime"}[s.Timestamp],
	}
	if s.Retention > 0 {
		out["retention.ms"] = strconv.FormatInt(s.Retention.Milliseconds(), 10)
	}
	if s.TombstoneRetention > 0 {
		out["delete.retention.ms"] = strconv.FormatInt(s.TombstoneRetention.Milliseconds(), 10)
	}
	if s.CompactionLag > 0 {
		out["min.compaction.lag.ms"] = strconv.FormatInt(s.CompactionLag.Milliseconds(), 10)
	}
	return out
}

// MaxBytes returns what stream.Deps.MaxBytes wants: how large a record of a topic may be.
func MaxBytes(specs []Spec) func(topic string) int {
	sizes := map[string]int{}
	for _, s := range specs {
		sizes[s.Name] = int(s.MaxMessageBytes)
	}
	return func(topic string) int { return sizes[topic] }
}
