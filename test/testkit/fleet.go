package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/services/pointsman/parts"
)

// Fleet are the services as processes.
type Fleet struct {
	w     *World
	dir   string
	opts  FleetOptions
	spawn chan func()

	processes []*Process
	started   map[string]int // by service, those that were forgotten included
	explain   string         // the first router's
}

// FleetOptions say how the processes are run.
type FleetOptions struct {
	// SessionTimeout is how long a process may be silent until the group gives its partitions to another; 0 is 2 s.
	SessionTimeout time.Duration
	// Env is added to the environment of every process.
	Env []string
	// Traces writes spans to the processes' logs.
	Traces bool
}

// Fleet makes ready to start processes; none runs yet. The test's end stops them all, and shows their logs if it failed.
func (w *World) Fleet(opts FleetOptions) *Fleet {
	w.T.Helper()
	if opts.SessionTimeout == 0 {
		opts.SessionTimeout = 2 * time.Second
	}
	f := &Fleet{w: w, dir: w.T.TempDir(), opts: opts, spawn: make(chan func()), started: map[string]int{}, explain: freePort(w.T)}
	go spawner(f.spawn)
	w.T.Cleanup(func() {
		for _, p := range f.processes {
			if p.Running() {
				p.Signal(syscall.SIGCONT)
				p.Kill()
			}
		}
		close(f.spawn)
		if !w.T.Failed() {
			return
		}
		for _, p := range f.processes {
			w.T.Logf("log of %s:\n%s", p.Name, p.Tail(60))
		}
	})
	return f
}

// Start starts an instance of each of the services named and waits until all of them are ready.
func (f *Fleet) Start(services ...string) {
	f.w.T.Helper()
	var started []*Process
	for _, service := range services {
		started = append(started, f.add(service))
	}
	for _, p := range started {
		p.Start()
	}
	for _, p := range started {
		p.Ready(90 * time.Second)
	}
}

// Of are the instances of a service, oldest first.
func (f *Fleet) Of(service string) (out []*Process) {
	for _, p := range f.processes {
		if p.Service == service {
			out = append(out, p)
		}
	}
	return out
}

// Forget takes a process that has ended off the list.
func (f *Fleet) Forget(p *Process) {
	f.processes = slices.DeleteFunc(f.processes, func(have *Process) bool { return have == p })
}

// Stop ends all processes in an orderly way, the front door first, and requires that each of them ends well.
func (f *Fleet) Stop() {
	f.w.T.Helper()
	for _, service := range slices.Backward(Services) {
		for _, p := range f.Of(service) {
			require.Zero(f.w.T, p.Stop(40*time.Second), "exit code of %s after SIGTERM\n%s", p.Name, p.Tail(20))
		}
	}
}

func (f *Fleet) add(service string) *Process {
	f.started[service]++
	n := f.started[service]
	p := &Process{
		Service: service, Name: fmt.Sprintf("%s-%d", service, n), Admin: freePort(f.w.T), HTTP: freePort(f.w.T),
		t: f.w.T, env: f.opts.Env, spawn: f.spawn,
	}
	if service == "router" && n == 1 {
		p.HTTP = f.explain
	}
	p.config, p.log = filepath.Join(f.dir, p.Name+".yaml"), filepath.Join(f.dir, p.Name+".log")
	text, err := yaml.Marshal(f.config(p))
	require.NoError(f.w.T, err)
	require.NoError(f.w.T, os.WriteFile(p.config, text, 0o600))
	f.processes = append(f.processes, p)
	return p
}

// Settings of the executor that are shortened, so that a take-over takes seconds. All executors share them.
const (
	guardLeave  = "1500ms"
	guardSettle = "500ms"
)

type section = map[string]any

// config is what a deployment's file would say.
func (f *Fleet) config(p *Process) section {
	sc := f.w.Stack
	telemetry := section{"admin": section{"address": p.Admin}, "log": section{"level": "INFO"}}
	if f.opts.Traces {
		telemetry["trace"] = section{"exporter": "stdout"}
	}
	c := section{"telemetry": telemetry, "kafka": section{"brokers": sc.Brokers, "prefix": sc.Prefix, "clientId": p.Name}}
	timeout := f.opts.SessionTimeout.String()
	group := section{"sessionTimeout": timeout, "heartbeatEvery": (f.opts.SessionTimeout / 5).String(), "rebalanceTimeout": "10s"}
	history := section{"addr": []string{sc.HistoryAddr}}
	const canary = "SELECT count() FROM " + parts.LakeDatabase + ".region"
	switch p.Service {
	case "intake":
		c["http"], c["auth"] = section{"address": p.HTTP}, section{"mode": "none"}
		c["rateLimit"] = section{"perSecond": 0}
		c["results"], c["explain"] = section{"folder": sc.Results()}, section{"url": "http://" + f.explain + "/v1/explain"}
	case "router":
		c["http"], c["history"], c["group"] = section{"address": p.HTTP}, history, section{"sessionTimeout": timeout}
		c["catalog"] = section{"folder": sc.LakeDir, "schema": parts.LakeDatabase}
	case "executor":
		c["group"], c["results"] = group, section{"folder": sc.Results()}
		c["attempts"] = section{"guardLeave": guardLeave, "guardSettle": guardSettle, "grace": "1s"}
		c["engines"] = []section{
			{"name": parts.Interactive, "url": "http://" + sc.InteractiveAddr, "slots": 4, "canary": canary},
			{"name": parts.BatchPool, "url": "http://" + sc.BatchAddr, "slots": 2, "canary": canary},
		}
	case "scaler":
		c["group"], c["http"] = group, section{"address": ""}
		c["kube"] = section{"url": sc.ClusterURL, "namespace": sc.ClusterNamespace, "name": sc.ClusterName}
		c["pools"] = []section{{
			"name": parts.BatchPool, "computeGroup": parts.BatchPool, "idleAfter": "1m", "drainFor": "1s", "raiseOnQueue": false,
			"engine": section{"url": "http://" + sc.BatchAddr, "canary": canary}, "probe": section{"wakeEvery": "200ms"},
		}}
	case "profiler":
		c["consumer"], c["history"], c["http"] = group, history, section{"address": ""}
		c["engines"] = []section{
			{"name": parts.Interactive, "kind": "clickhouse", "addr": []string{sc.InteractiveAddr}, "canary": canary, "slots": 4},
			{"name": parts.BatchPool, "kind": "clickhouse", "addr": []string{sc.BatchAddr}, "canary": canary, "slots": 2},
		}
	}
	return c
}
