package router_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/services/router"
)

// childEnv makes this binary a router: tests that kill one need a process of its own.
const childEnv = "POINTSMAN_TEST_ROUTER_BROKERS"

func TestMain(m *testing.M) {
	if brokers := os.Getenv(childEnv); brokers != "" {
		cfg := testConfig()
		cfg.Kafka.Brokers = strings.Split(brokers, ",")
		cfg.Kafka.ClientID = fmt.Sprint("router-", os.Getpid())
		cfg.Kafka.Prefix = os.Getenv(childEnv + "_PREFIX")
		cfg.HTTP.Address = ""
		cfg.Policy.File = os.Getenv(childEnv + "_POLICY")
		ctx, stop := lifecycle.SignalContext(context.Background())
		err := router.Run(ctx, cfg)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, "router:", err)
		}
		os.Exit(lifecycle.ExitCode(err))
	}
	goleak.VerifyTestMain(m)
}

// testConfig is a router's configuration without history, and with a group that notices a dead member soon.
func testConfig() router.Config {
	cfg := router.Default()
	cfg.Telemetry.Admin.Address = "127.0.0.1:0"
	cfg.HTTP.Address = "127.0.0.1:0"
	cfg.History.Addr = []string{"127.0.0.1:1"}
	cfg.Profiles.LookupDeadline = 20 * time.Millisecond
	cfg.Group.SessionTimeout = 2 * time.Second
	return cfg
}
