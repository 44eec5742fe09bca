// Package engines opens the client of an engine from what a configuration says of it: a kind, a URL, a credential. The services
// that use engines have the same words for them because of it, and know no adapter by name.
//
// How an engine is spoken to is its adapter's.
package engines

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/engine/postgres"
	"github.com/pointsman/pointsman/pkg/engine/spark"
	"github.com/pointsman/pointsman/pkg/engine/trino"
)

// Config is an engine as a configuration tells of it.
type Config struct {
	// Name is the cluster's name in decisions and signals.
	Name string
	// Kind is one of Kinds.
	Kind string
	// Flavour is the kind of server behind MySQL's protocol; empty means that the server is asked.
	Flavour string
	// URL says where one server is, and how it is reached: scheme, host and port, and parameters for TLS.
	URL      string
	User     string
	Password string
	Database string
	// Group is the workload group that queries run in, or, with Trino, the resource group that is observed.
	Group  string
	Canary string
	// Queries is the most queries that run at once through this client; 0 is one that only watches.
	Queries int
}

// Doc says in a sentence how URLs look, for the reference of a configuration.
const Doc = "http(s)://host:8123 or clickhouse(s)://host:9000 (clickhouse), postgres://host:5432?sslmode=verify-full (postgres), mysql://host:3306?tls=true (mysql), http(s)://host:8080 (trino), sc://host:15002?tls=true (spark), grpc(+tls)://host:31337?database-header=database (flightsql). `ca=` (sslrootcert with postgres) names the file of an authority that the system does not know. It is one server: of several hosts each is an engine of its own."

var openers = map[string]func(Config) (func() (engine.Engine, error), error){
	clickhouse.Kind: openClickHouse,
	postgres.Kind:   openPostgres,
	mysql.Kind:      openMySQL,
	trino.Kind:      openTrino,
	spark.Kind:      openSpark,
	flightsql.Kind:  openFlightSQL,
}

// Kinds are the kinds of engines that are built in.
func Kinds() []string { return slices.Sorted(maps.Keys(openers)) }

// ErrKind refuses a kind of engine that is not built in.
var ErrKind = errors.New("is not a kind of engine that is built in")

// ErrFlavour refuses a flavour that no server has.
var ErrFlavour = errors.New("flavour")

// Database is where a statement's bare names are looked up, as an engine of a kind is told: catalog and schema where the kind has
// catalogs, and the schema alone elsewhere.
func Database(kind, catalog, schema string) string {
	if (kind == trino.Kind || kind == spark.Kind) && catalog != "" {
		return catalog + "." + schema
	}
	return schema
}

// Check says what is wrong with a configuration. It reaches nothing.
func Check(c Config) error {
	_, err := prepare(c)
	return err
}

// Open makes a client. It does not dial yet: an engine that is down is no error here.
func Open(c Config) (engine.Engine, error) {
	open, err := prepare(c)
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", c.Name, err)
	}
	return open()
}

// Key is the key of a configuration that an error of Check is about.
func Key(err error) string {
	switch {
	case errors.Is(err, ErrKind):
		return "kind"
	case errors.Is(err, ErrFlavour):
		return "flavour"
	case errors.Is(err, trino.ErrUser):
		return "user"
	case errors.Is(err, trino.ErrPassword), errors.Is(err, flightsql.ErrPassword), errors.Is(err, spark.ErrToken):
		return "password"
	default:
		return "url"
	}
}

func prepare(c Config) (func() (engine.Engine, error), error) {
	prepare, ok := openers[c.Kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q %w; those are %s", c.Kind, ErrKind, strings.Join(Kinds(), ", "))
	case c.Flavour != "" && c.Kind != mysql.Kind:
		return nil, fmt.Errorf("a %w is for the kind %s only", ErrFlavour, mysql.Kind)
	}
	return prepare(c)
}

func openClickHouse(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "http", "https", "clickhouse", "clickhouses")
	if err != nil {
		return nil, err
	}
	cfg := clickhouse.Config{
		Name: c.Name, Addrs: []string{u.addr}, Protocol: clickhouse.HTTP, User: cmp.Or(c.User, "default"), Password: c.Password, Database: c.Database, Canary: c.Canary,
		// Queries that were let go keep their connections until they are over, and must not keep others waiting.
		Queries: max(2*c.Queries+4, 1),
	}
	if c.Queries == 0 {
		cfg.Queries = 1
	}
	if strings.HasPrefix(u.scheme, "clickhouse") {
		cfg.Protocol = clickhouse.Native
	}
	if err := u.only(caParam); err != nil {
		return nil, err
	}
	if cfg.TLS, err = u.tlsFor(strings.HasSuffix(u.scheme, "s")); err != nil {
		return nil, err
	}
	return func() (engine.Engine, error) { return clickhouse.Open(cfg) }, nil
}

func openPostgres(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "postgres", "postgresql")
	if err == nil {
		err = u.only("sslmode", "sslrootcert")
	}
	if err != nil {
		return nil, err
	}
	cfg := postgres.Config{
		Name: c.Name, Addr: u.addr, SSLMode: u.params.Get("sslmode"), SSLRootCert: u.params.Get("sslrootcert"),
		User: c.User, Password: c.Password, Database: c.Database, Canary: c.Canary, Spares: spares(c),
	}
	if mode := cfg.SSLMode; mode != "" && !slices.Contains(postgres.SSLModes, mode) {
		return nil, fmt.Errorf("sslmode %q is none of %s", mode, strings.Join(postgres.SSLModes, ", "))
	}
	return func() (engine.Engine, error) { return postgres.Open(cfg) }, nil
}

func openMySQL(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "mysql")
	if err == nil {
		err = u.only("tls", caParam)
	}
	if err != nil {
		return nil, err
	}
	cfg := mysql.Config{
		Name: c.Name, Addr: u.addr, Flavour: mysql.Flavour(c.Flavour), User: c.User, Password: c.Password, Database: c.Database,
		WorkloadGroup: c.Group, Canary: c.Canary, Spares: spares(c),
	}
	if cfg.TLS, err = u.tlsMode(); err != nil {
		return nil, err
	}
	if cfg.Flavour != "" && !slices.Contains(mysql.Flavours(), cfg.Flavour) {
		return nil, fmt.Errorf("%q is no %w; those are %v", c.Flavour, ErrFlavour, mysql.Flavours())
	}
	return func() (engine.Engine, error) { return mysql.Open(cfg) }, nil
}

func openTrino(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "http", "https")
	if err == nil {
		err = u.only(caParam)
	}
	if err != nil {
		return nil, err
	}
	cfg := trino.Config{
		Name: c.Name, URL: u.scheme + "://" + u.addr, User: c.User, Password: c.Password, Database: c.Database, ResourceGroup: c.Group, Canary: c.Canary,
	}
	if cfg.TLS, err = u.tlsFor(u.scheme == "https"); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return func() (engine.Engine, error) { return trino.Open(cfg) }, nil
}

func openFlightSQL(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "grpc", "grpc+tcp", "grpc+tls")
	if err == nil {
		err = u.only("database-header", caParam)
	}
	if err != nil {
		return nil, err
	}
	cfg := flightsql.Config{
		Name: c.Name, Addr: u.addr, User: c.User, Password: c.Password, Database: c.Database,
		DatabaseHeader: u.params.Get("database-header"), Canary: c.Canary,
	}
	if cfg.TLS, err = u.tlsFor(u.scheme == "grpc+tls"); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return func() (engine.Engine, error) { return flightsql.Open(cfg) }, nil
}

func openSpark(c Config) (func() (engine.Engine, error), error) {
	u, err := parse(c.URL, "sc")
	if err == nil {
		err = u.only("tls", caParam)
	}
	if err != nil {
		return nil, err
	}
	cfg := spark.Config{Name: c.Name, Addr: u.addr, User: c.User, Token: c.Password, Database: c.Database, Canary: c.Canary}
	if cfg.TLS, err = u.tlsMode(); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return func() (engine.Engine, error) { return spark.Open(cfg) }, nil
}

// spares are the connections that are kept ready: none by a client that only watches.
func spares(c Config) int {
	if c.Queries == 0 {
		return -1
	}
	return min(c.Queries, 4)
}
