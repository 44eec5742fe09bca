// Package parts starts the real parts that pointsman embeds, so that one command is enough: a Kafka broker in this process,
// the ClickHouse engine in child processes (history, and two pools of different physics), the lakehouse's tables as Parquet
// files, and the custom resource that the scaler patches.
//
// It knows nothing of the services: they find the parts by address, as they would find a cluster's.
package parts

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"
)

// The names of the pools and of the resource's group that the scaler patches.
const (
	Interactive = "interactive"
	BatchPool   = "batch"
	History     = "history"
	// LakeDatabase is the database that the pools show the lakehouse's tables in.
	LakeDatabase = "tpch"
)

// Config says where the parts listen and where they keep things. Addresses with port 0 take a free port.
type Config struct {
	DataDir         string
	KafkaAddr       string
	HistoryAddr     string
	InteractiveAddr string
	BatchAddr       string
	ClusterAddr     string
	// KeepTopics keeps the topics in DataDir; without it they live in memory.
	KeepTopics bool
	// Scale and Seed are those of the generated tables.
	Scale float64
	Seed  uint64
	// LibPath is the engine's library; empty fetches it on first use.
	LibPath string
	// InteractiveMemory is the hard memory limit of a query on the interactive pool, in bytes.
	InteractiveMemory int64
	// BatchStartDelay is how long the batch pool's node takes to come up.
	BatchStartDelay time.Duration
	// InteractiveThreads and BatchThreads are the threads of one query.
	InteractiveThreads, BatchThreads int

	Log *slog.Logger
	// Progress is where long steps are shown; nil shows nothing.
	Progress io.Writer
}

// Default is the configuration of `pointsman up` with its state in dir.
func Default(dir string) Config {
	return Config{
		DataDir: dir, KafkaAddr: "127.0.0.1:9092", HistoryAddr: "127.0.0.1:8123", InteractiveAddr: "127.0.0.1:8124",
		BatchAddr: "127.0.0.1:8125", ClusterAddr: "127.0.0.1:8130", Scale: 0.05, Seed: 1,
		InteractiveMemory: 150_000_000, BatchStartDelay: 2 * time.Second, InteractiveThreads: 1, BatchThreads: 2,
		Log: slog.New(slog.DiscardHandler),
	}
}

// Free is Default with free ports throughout, for tests and for a second instance on one machine.
func Free(dir string) Config {
	c := Default(dir)
	for _, addr := range []*string{&c.KafkaAddr, &c.HistoryAddr, &c.InteractiveAddr, &c.BatchAddr, &c.ClusterAddr} {
		*addr = "127.0.0.1:0"
	}
	return c
}

// Validate names every fault of the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("the parts need a data folder"))
	}
	if c.Scale <= 0 {
		errs = append(errs, errors.New("the scale of the tables must be above 0"))
	}
	if c.InteractiveMemory <= 0 {
		errs = append(errs, errors.New("the interactive pool needs a memory limit above 0"))
	}
	return errors.Join(errs...)
}

// LakeDir is the folder of the lakehouse's tables.
func (c Config) LakeDir() string { return filepath.Join(c.DataDir, "lake") }
