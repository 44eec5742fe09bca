package command

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/migrate"
)

type migrateCmd struct {
	historyFlags
	Up     migrateUpCmd     `cmd:"" help:"Apply what is not applied yet; makes the database if it is missing."`
	Status migrateStatusCmd `cmd:"" help:"Say which migrations are applied."`
	Down   migrateDownCmd   `cmd:"" help:"Take migrations back, down to a version. This deletes data."`
}

// historyFlags say where the history is.
type historyFlags struct {
	Addr     string `help:"ClickHouse, host:port." default:"127.0.0.1:8123"`
	Database string `help:"Database of the history." default:"pointsman"`
	User     string `help:"User name." default:"default"`
	Password string `help:"Password." env:"POINTSMAN_HISTORY_PASSWORD"`
	Protocol string `help:"http or native." default:"http" enum:"http,native"`
	Cluster  string `help:"ClickHouse cluster to make replicated tables on."`
}

func (f historyFlags) config() history.Config {
	c := history.DefaultConfig()
	c.Addr, c.Database, c.User, c.Password = []string{f.Addr}, f.Database, f.User, config.Secret(f.Password)
	c.Protocol, c.Cluster = history.Protocol(f.Protocol), f.Cluster
	return c
}

type migrateUpCmd struct{}

// Run applies the migrations.
func (migrateUpCmd) Run(ctx context.Context, s *streams, c *cli) error {
	applied, err := migrate.Up(ctx, c.Migrate.config())
	if err != nil {
		return err
	}
	for _, m := range applied {
		_, _ = fmt.Fprintf(s.out, "applied %s\n", m.File)
	}
	if len(applied) == 0 {
		_, _ = fmt.Fprintln(s.out, "nothing to do")
	}
	return nil
}

type migrateStatusCmd struct{}

// Run prints the state of each migration.
func (migrateStatusCmd) Run(ctx context.Context, s *streams, c *cli) error {
	list, err := migrate.Status(ctx, c.Migrate.config())
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "version\tfile\tapplied")
	for _, m := range list {
		at := "no"
		if m.Applied {
			at = m.At.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\n", m.Version, m.File, at)
	}
	return t.Flush()
}

type migrateDownCmd struct {
	To  int64 `help:"Version to go down to; 0 takes everything back." required:""`
	Yes bool  `help:"Do it: it deletes the tables above that version."`
}

// Run takes migrations back.
func (d migrateDownCmd) Run(ctx context.Context, s *streams, c *cli) error {
	if !d.Yes {
		return fmt.Errorf("this deletes the tables of every migration above %d in %s; say --yes if you mean it", d.To, c.Migrate.Addr)
	}
	back, err := migrate.Down(ctx, c.Migrate.config(), d.To)
	if err != nil {
		return err
	}
	for _, m := range back {
		_, _ = fmt.Fprintf(s.out, "took back %s\n", m.File)
	}
	return nil
}
