package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
)

type sample struct {
	Name    string          `yaml:"name" doc:"Name of the instance."`
	Enabled bool            `yaml:"enabled" doc:"Whether it runs."`
	Ratio   float64         `yaml:"ratio" doc:"Share of the load."`
	Listen  netip.AddrPort  `yaml:"listen" doc:"Address."`
	Limit   *int            `yaml:"limit" doc:"Upper bound; none when it is missing."`
	Since   time.Time       `yaml:"since" doc:"First day."`
	Free    any             `yaml:"free" doc:"Passed on as it is."`
	Kafka   sampleKafka     `yaml:"kafka" doc:"Broker."`
	Pools   map[string]pool `yaml:"pools" doc:"Pools by name."`
	Tokens  []token         `yaml:"tokens" doc:"Credentials."`
	Tags    map[string]int  `yaml:"tags" doc:"Numbers."`
	Skipped func()          `yaml:"-"`
}

type sampleKafka struct {
	Brokers   []string        `yaml:"brokers" doc:"Addresses."`
	PollWait  time.Duration   `yaml:"pollWait" doc:"Longest wait."`
	MaxFetch  config.ByteSize `yaml:"maxFetch" doc:"Largest answer."`
	MaxEvents uint16          `yaml:"maxEvents" doc:"Largest batch."`
	Password  config.Secret   `yaml:"password" doc:"For SASL."`
}

type pool struct {
	Memory  config.ByteSize `yaml:"memory" doc:"Limit."`
	Threads int             `yaml:"threads" doc:"Threads."`
}

func (p *pool) SetDefaults() { p.Threads = 4 }

func (p pool) Validate() error {
	if p.Threads < 1 {
		return config.Invalid("threads", "must be at least 1, is %d", p.Threads)
	}
	return nil
}

type token struct {
	Tenant string        `yaml:"tenant" doc:"Tenant."`
	Token  config.Secret `yaml:"token" doc:"Bearer token."`
}

func (k sampleKafka) Validate() error {
	var errs []error
	if len(k.Brokers) == 0 {
		errs = append(errs, config.Invalid("brokers", "name at least one"))
	}
	if k.PollWait <= 0 {
		errs = append(errs, config.Invalid("pollWait", "must be positive, is %s", k.PollWait))
	}
	return errors.Join(errs...)
}

func (s sample) Validate() error {
	if s.Ratio > 1 {
		return config.Invalid("ratio", "must be at most 1, is %v", s.Ratio)
	}
	if s.Name == "kafka" {
		return errors.New("a name of its own is needed")
	}
	return nil
}

func sampleDefault() sample {
	return sample{
		Name: "one", Ratio: 0.5, Listen: netip.MustParseAddrPort("127.0.0.1:0"),
		Kafka: sampleKafka{Brokers: []string{"a:1", "b:2", "c:3"}, PollWait: time.Second, MaxFetch: config.MiB, MaxEvents: 500},
		Pools: map[string]pool{"batch": {Memory: 8 * config.GiB, Threads: 2}},
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sample.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestLayersInTheirOrder(t *testing.T) {
	file := write(t, "name: file\nratio: 0.1\nkafka:\n  pollWait: 2s\n  maxEvents: 10\n")
	for name, c := range map[string]struct {
		opts config.Options
		want func(*sample)
	}{
		"defaults": {config.Options{}, func(*sample) {}},
		"file": {config.Options{File: file}, func(s *sample) {
			s.Name, s.Ratio, s.Kafka.PollWait, s.Kafka.MaxEvents = "file", 0.1, 2*time.Second, 10
		}},
		"environment over file": {
			config.Options{File: file, Service: "router", Environ: []string{"POINTSMAN_ROUTER_KAFKA_POLL_WAIT=3s", "POINTSMAN_ROUTER_NAME=env", "HOME=/"}},
			func(s *sample) {
				s.Name, s.Ratio, s.Kafka.PollWait, s.Kafka.MaxEvents = "env", 0.1, 3*time.Second, 10
			},
		},
		"flags over environment": {
			config.Options{File: file, Service: "router", Environ: []string{"POINTSMAN_ROUTER_NAME=env"}, Set: []string{"name=flag", "kafka.maxEvents=7", "name=last"}},
			func(s *sample) {
				s.Name, s.Ratio, s.Kafka.PollWait, s.Kafka.MaxEvents = "last", 0.1, 2*time.Second, 7
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := sampleDefault()
			c.want(&want)
			got, err := config.Load(sampleDefault(), c.opts)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got.Config, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })))
		})
	}
}

func TestEveryKindOfValue(t *testing.T) {
	file := write(t, `
name: 1.10
enabled: true
ratio: 1
listen: "[::1]:8080"
limit: 5
since: 2026-11-30
free: {a: [1, x], b: null}
kafka:
  brokers: [only:1]
  maxFetch: 1.5 MiB
  password: hunter2
pools:
  batch: {memory: 2 GB}
  eu.small: {memory: 512 MiB, threads: 1}
  fresh: {}
tokens:
  - {tenant: a, token: t1}
  - tenant: b
tags: {x: 1}
`)
	def := sampleDefault()
	called := false
	def.Skipped = func() { called = true }
	got, err := config.Load(def, config.Options{File: file})
	require.NoError(t, err)
	c := got.Config
	require.Equal(t, "1.10", c.Name, "as it is written, not as a number")
	require.True(t, c.Enabled)
	require.InDelta(t, 1.0, c.Ratio, 0)
	require.Equal(t, "[::1]:8080", c.Listen.String())
	require.Equal(t, 5, *c.Limit)
	require.Equal(t, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), c.Since)
	require.Equal(t, map[string]any{"a": []any{uint64(1), "x"}, "b": nil}, c.Free)
	require.Equal(t, []string{"only:1"}, c.Kafka.Brokers, "a list is replaced, not merged")
	require.Equal(t, config.ByteSize(1.5*1024*1024), c.Kafka.MaxFetch)
	require.Equal(t, "hunter2", c.Kafka.Password.Reveal())
	require.Equal(t, map[string]pool{
		"batch":    {Memory: 2 * config.GB, Threads: 2},
		"eu.small": {Memory: 512 * config.MiB, Threads: 1},
		"fresh":    {Threads: 4},
	}, c.Pools, "a map is merged by key; new elements start from their defaults")
	require.Equal(t, []token{{"a", "t1"}, {"b", ""}}, c.Tokens)
	require.Equal(t, map[string]int{"x": 1}, c.Tags)
	c.Skipped()
	require.True(t, called, "what is no part of the configuration is left alone")
	require.Equal(t, []string{"a:1", "b:2", "c:3"}, def.Kafka.Brokers, "the default is not written to")
	require.Equal(t, 2, def.Pools["batch"].Threads)
	require.Len(t, def.Pools, 1)
}

func TestNothingSaidIsTheDefault(t *testing.T) {
	for name, text := range map[string]string{
		"empty file": "", "comment": "# nothing\n", "section without keys": "kafka:\n", "list without a value": "tokens:\n",
		"map without a value": "pools: ~\n", "document marks": "---\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(sampleDefault(), config.Options{File: write(t, text)})
			require.NoError(t, err)
			require.Equal(t, sampleDefault(), got.Config)
		})
	}
}

func TestNullTakesAnOptionalValueAway(t *testing.T) {
	def := sampleDefault()
	five := 5
	def.Limit = &five
	got, err := config.Load(def, config.Options{File: write(t, "limit: null\n")})
	require.NoError(t, err)
	require.Nil(t, got.Config.Limit)
	require.Equal(t, 5, *def.Limit)
}

func TestAnchorsAndMerges(t *testing.T) {
	got, err := config.Load(sampleDefault(), config.Options{File: write(t, `
pools:
  a: &base {memory: 1 GB, threads: 3}
  b: *base
  c:
    <<: *base
    threads: 9
`)})
	require.NoError(t, err)
	require.Equal(t, pool{config.GB, 3}, got.Config.Pools["b"])
	require.Equal(t, pool{config.GB, 9}, got.Config.Pools["c"])
}

// Each file has one fault; the error must name the place, the key and the remedy.
func TestFaultsInTheFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":           {"name: x\nretries: 3\n", "2:1: retries: unknown key; known are name, enabled, ratio"},
		"misspelt key":          {"kafka:\n  pollwait: 2s\n", `2:3: kafka.pollwait: unknown key; did you mean "pollWait"?`},
		"unknown key in a list": {"tokens:\n  - tenant: a\n    expiry: 5\n", "3:5: tokens[0].expiry: unknown key"},
		"unknown key in a map":  {"pools:\n  batch:\n    cpu: 5\n", "3:5: pools.batch.cpu: unknown key"},
		"no boolean":            {"enabled: yes\n", `1:10: enabled: must be true or false, is "yes"`},
		"no whole number":       {"kafka:\n  maxEvents: 1.5\n", `2:14: kafka.maxEvents: must be a whole number that is not negative, is "1.5"`},
		"number out of range":   {"kafka:\n  maxEvents: 70000\n", "2:14: kafka.maxEvents: must be a whole number that is not negative, 70000 is out of range"},
		"no number":             {"ratio: half\n", `1:8: ratio: must be a number, is "half"`},
		"no unit":               {"kafka:\n  pollWait: 5\n", `2:13: kafka.pollWait: "5" has no unit: write for example 250ms`},
		"no duration":           {"kafka:\n  pollWait: soon\n", `2:13: kafka.pollWait: "soon" is no duration`},
		"no size":               {"kafka:\n  maxFetch: 5 gallons\n", `2:13: kafka.maxFetch: unknown unit "gallons"`},
		"no time":               {"since: yesterday\n", `1:8: since: "yesterday" is no time`},
		"list for a value":      {"name: [a]\n", "1:7: name: must be a text, is a list"},
		"value for a section":   {"kafka: here\n", "1:8: kafka: must be a section, is a single value"},
		"map for a list":        {"tokens:\n  a: b\n", "2:3: tokens: must be a list, is a map"},
		"value missing":         {"name:\nratio: 1\n", "name: has no value: write a text, or leave the key out"},
		"duplicate key":         {"name: a\nname: b\n", `2:1: mapping key "name" already defined at [1:1]`},
		"syntax":                {"name: [a\n", "sample.yaml:1:"},
		"not a map":             {"just text\n", "1:1: must be a section, is a single value"},
		"two documents":         {"name: a\n---\nname: b\n", "3:1: a second document"},
		"anchor in free form":   {"free: [*nothing]\n", "1:7: free: could not find alias \"nothing\""},
		"recursive anchor":      {"pools: &x {a: *x}\n", "1:12: pools.a.a: unknown key"},
		"unknown anchor":        {"name: *nothing\n", "1:7: name: no anchor &nothing before this"},
		"validation":            {"\nratio: 2\n", "2:8: ratio: must be at most 1, is 2"},
		"validation in a part":  {"kafka: {brokers: []}\n", "kafka.brokers: name at least one"},
		"validation in a map":   {"pools:\n  x:\n    threads: 0\n", "3:14: pools.x.threads: must be at least 1, is 0"},
		"validation of a whole": {"name: kafka\n", "a name of its own is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, c.text)
			_, err := config.Load(sampleDefault(), config.Options{File: file})
			require.ErrorContains(t, err, c.want)
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "one fault, one error")
			var problem *config.Problem
			require.ErrorAs(t, err, &problem)
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	file := write(t, "nane: x\nenabled: maybe\nkafka: {pollWait: 1}\n")
	_, err := config.Load(sampleDefault(), config.Options{
		File: file, Service: "router", Environ: []string{"POINTSMAN_ROUTER_RATIO=x"}, Set: []string{"kafka.brokers.x=1", "oops"},
	})
	require.Error(t, err)
	require.Equal(t, []string{
		file + `:1:1: nane: unknown key; did you mean "name"?`,
		file + `:2:10: enabled: must be true or false, is "maybe"`,
		file + `:3:19: kafka.pollWait: "1" has no unit: write for example 250ms, 5s, 1h30m or 7d`,
		`environment POINTSMAN_ROUTER_RATIO: ratio: must be a number, is "x"`,
		`flag -set kafka.brokers.x: kafka.brokers.x: kafka.brokers has no keys in it`,
		`flag -set oops: write it as key=value`,
	}, strings.Split(err.Error(), "\n"))
}

func TestFileThatIsNotThere(t *testing.T) {
	_, err := config.Load(sampleDefault(), config.Options{File: filepath.Join(t.TempDir(), "no.yaml")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEnvironmentForms(t *testing.T) {
	secret := write(t, "s3cret\n")
	got, err := config.Load(sampleDefault(), config.Options{Service: "router", Environ: []string{
		"POINTSMAN_ROUTER_KAFKA_BROKERS=x:1, y:2",
		"POINTSMAN_ROUTER_KAFKA_PASSWORD_FILE=" + secret,
		"POINTSMAN_ROUTER_TOKENS=[{tenant: a, token: t}]",
		"POINTSMAN_ROUTER_POOLS={new: {memory: 1 KB}}",
		"POINTSMAN_ROUTER_LIMIT=3",
		"POINTSMAN_ROUTER_SERVICE_PORT=tcp://10.0.0.1:80",
		"POINTSMAN_ROUTER_NAME_FILE=/x",
		"POINTSMAN_ROUTER_CONFIG=/etc/router.yaml",
		"POINTSMAN_EXECUTOR_NAME=other",
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"x:1", "y:2"}, got.Config.Kafka.Brokers)
	require.Equal(t, "s3cret", got.Config.Kafka.Password.Reveal())
	require.Equal(t, []token{{"a", "t"}}, got.Config.Tokens)
	require.Equal(t, map[string]pool{"batch": {8 * config.GiB, 2}, "new": {config.KB, 4}}, got.Config.Pools)
	require.Equal(t, 3, *got.Config.Limit)
	require.Equal(t, []string{
		"environment POINTSMAN_ROUTER_NAME_FILE: no such key",
		"environment POINTSMAN_ROUTER_SERVICE_PORT: no such key",
	}, got.Warnings, "variables that a container platform adds must not stop the service")
}

func TestFaultsInTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"secret twice": {
			[]string{"POINTSMAN_ROUTER_KAFKA_PASSWORD=a", "POINTSMAN_ROUTER_KAFKA_PASSWORD_FILE=/x"},
			"environment POINTSMAN_ROUTER_KAFKA_PASSWORD_FILE: kafka.password: is set by POINTSMAN_ROUTER_KAFKA_PASSWORD too",
		},
		"secret file missing": {[]string{"POINTSMAN_ROUTER_KAFKA_PASSWORD_FILE=/no/such/file"}, "kafka.password: open /no/such/file"},
		"empty element":       {[]string{"POINTSMAN_ROUTER_KAFKA_BROKERS=a,,b"}, "kafka.brokers: has an empty element"},
		"yaml":                {[]string{"POINTSMAN_ROUTER_TOKENS=[{tenannt: a}]"}, `tokens[0].tenannt: unknown key; did you mean "tenant"?`},
		"validation":          {[]string{"POINTSMAN_ROUTER_RATIO=7"}, "environment POINTSMAN_ROUTER_RATIO: ratio: must be at most 1, is 7"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(sampleDefault(), config.Options{Service: "router", Environ: c.environ})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestErrorsNeverShowASecret(t *testing.T) {
	_, err := config.Load(sampleDefault(), config.Options{File: write(t, "kafka: {password: [hunter2]}\n")})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestSetReachesIntoMaps(t *testing.T) {
	got, err := config.Load(sampleDefault(), config.Options{Set: []string{
		"pools.batch.memory=1 GB", "tags.x=3", "kafka.brokers=", "kafka.brokers=[z:9]", `pools={"eu.small": {memory: 2 GB}}`,
	}})
	require.NoError(t, err)
	require.Equal(t, pool{config.GB, 2}, got.Config.Pools["batch"])
	require.Equal(t, pool{2 * config.GB, 4}, got.Config.Pools["eu.small"])
	require.Equal(t, map[string]int{"x": 3}, got.Config.Tags)
	require.Equal(t, []string{"z:9"}, got.Config.Kafka.Brokers)
	require.Equal(t, "flag -set kafka.brokers", got.Origins["kafka.brokers"].String())
}

func TestValidateForConfigurationsBuiltInCode(t *testing.T) {
	s := sampleDefault()
	require.NoError(t, config.Validate(s))
	s.Ratio, s.Kafka.PollWait = 3, 0
	require.EqualError(t, config.Validate(s), "kafka.pollWait: must be positive, is 0s\nratio: must be at most 1, is 3")
	require.EqualError(t, config.Validate(&s), config.Validate(s).Error())
}

type sentence struct{}

func (sentence) Validate() error {
	return fmt.Errorf("of two pools one must be awake: %w", config.Invalid("asleep", "is true"))
}

func TestAnErrorInASentenceKeepsTheSentence(t *testing.T) {
	require.EqualError(t, config.Validate(sentence{}), "of two pools one must be awake: asleep: is true")
}

func TestPrintHidesSecretsAndLoadsAgain(t *testing.T) {
	file := write(t, "name: x\nkafka: {password: hunter2}\ntokens: [{tenant: a, token: hunter3}]\n")
	opts := config.Options{File: file, Service: "router", Environ: []string{"POINTSMAN_ROUTER_RATIO=0.25"}}
	loaded, err := config.Load(sampleDefault(), opts)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, loaded.Print(&out))
	text := out.String()
	require.NotContains(t, text, "hunter")
	require.Contains(t, text, fmt.Sprintf("name: x # %s:1:7\n", file))
	require.Contains(t, text, "ratio: 0.25 # environment POINTSMAN_ROUTER_RATIO\n")
	require.Contains(t, text, "enabled: false\n")
	require.Contains(t, text, "maxFetch: 1 MiB\n")

	again, err := config.Load(sampleDefault(), config.Options{File: write(t, text)})
	require.NoError(t, err)
	want := loaded.Config
	want.Kafka.Password = config.Redacted
	want.Tokens = []token{{"a", config.Redacted}}
	want.Tags, again.Config.Tags = nil, nil
	require.Equal(t, want, again.Config)
}
