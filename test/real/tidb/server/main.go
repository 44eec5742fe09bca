// Command server is TiDB in one process, over a store in memory: its parser, its optimizer, its executor and its MySQL protocol are
// TiDB's own, there is no TiKV and no PD. It is a module of its own, since it takes ten minutes to build.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/pingcap/tidb/pkg/config"
	"github.com/pingcap/tidb/pkg/server"
	"github.com/pingcap/tidb/pkg/session"
	"github.com/pingcap/tidb/pkg/store/mockstore"
)

func main() {
	port := flag.Uint("port", 4000, "port on 127.0.0.1")
	flag.Parse()
	if err := run(*port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(port uint) error {
	store, err := mockstore.NewMockStore()
	if err != nil {
		return err
	}
	session.DisableStats4Test()
	domain, err := session.BootstrapSession(store)
	if err != nil {
		return err
	}
	cfg := config.NewConfig()
	cfg.Host, cfg.Port, cfg.Status.ReportStatus, cfg.Store = "127.0.0.1", port, false, "unistore"
	config.StoreGlobalConfig(cfg)
	s, err := server.NewServer(cfg, server.NewTiDBDriver(store))
	if err != nil {
		return err
	}
	s.SetDomain(domain)
	go domain.ExpensiveQueryHandle().SetSessionManager(s).Run() // it enforces the time limits
	return s.Run()
}
