package deploy

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/history/historytest"
)

type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Timezone   string  `json:"timezone"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Targets     []target `json:"targets"`
}

type target struct {
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	RawSQL    string `json:"rawSql"`
	QueryType string `json:"queryType"`
	Expr      string `json:"expr"`
}

type variable struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

func TestDashboardsAreWhole(t *testing.T) {
	var provisioned struct {
		Datasources []struct {
			UID string `yaml:"uid"`
		} `yaml:"datasources"`
	}
	require.NoError(t, yaml.Unmarshal(read(t, "deploy/grafana/provisioning/datasources/pointsman.yaml"), &provisioned))
	uids := map[string]bool{}
	for _, d := range provisioned.Datasources {
		uids[d.UID] = true
	}
	require.Contains(t, string(read(t, "deploy/grafana/provisioning/dashboards/pointsman.yaml")), "/var/lib/grafana/dashboards")
	seen := map[string]string{}
	for name, board := range dashboards(t) {
		require.NotEmpty(t, board.UID, name)
		require.Empty(t, seen[board.UID], "two dashboards with one uid")
		seen[board.UID] = name
		require.Equal(t, "utc", board.Timezone, name)
		ids := map[int]bool{}
		for _, p := range board.Panels {
			require.False(t, ids[p.ID], "%s: panel id %d is there twice", name, p.ID)
			ids[p.ID] = true
			require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, "%s: %s", name, p.Title)
			if p.Type == "row" {
				continue
			}
			require.NotEmpty(t, p.Description, "%s: %s must say what it counts", name, p.Title)
			require.NotEmpty(t, p.Targets, "%s: %s", name, p.Title)
			for _, target := range p.Targets {
				require.True(t, uids[target.Datasource.UID], "%s: %s reads from %q, which is not provisioned", name, p.Title, target.Datasource.UID)
			}
		}
	}
}

// A rate without its sample size says nothing: 1 of 1 looks like 1000 of 1000.
func TestRatesHaveTheirSampleSize(t *testing.T) {
	for name, board := range dashboards(t) {
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				sql := strings.ToLower(target.RawSQL)
				if p.Type == "timeseries" || !strings.Contains(sql, "rate") {
					continue
				}
				require.True(t, strings.Contains(sql, "count()") || strings.Contains(sql, "n7"), "%s: %s has a rate and no number of tasks", name, p.Title)
			}
		}
	}
}

func TestQueriesRunOnTheSchema(t *testing.T) {
	cfg := historytest.Migrated(t)
	conn := historytest.Open(t, cfg).Conn()
	now := time.Now().UTC()
	run := func(t *testing.T, when string, sure map[string]int) {
		for name, board := range dashboards(t) {
			for _, v := range board.Templating.List {
				_, err := rows(t.Context(), conn, v.Definition)
				require.NoError(t, err, "%s: variable %s", name, v.Name)
			}
			for _, p := range board.Panels {
				for _, target := range p.Targets {
					if target.RawSQL == "" {
						continue
					}
					for _, all := range []bool{true, false} {
						got, err := rows(t.Context(), conn, grafana(t, target.RawSQL, now, all))
						require.NoError(t, err, "%s, %s: %s", name, when, p.Title)
						got.check(t, name+": "+p.Title, target.QueryType)
						if want, ok := sure[p.Title]; ok && all {
							require.Len(t, got.values, want, "%s, %s: %s", name, when, p.Title)
						}
					}
				}
			}
		}
	}
	run(t, "empty", map[string]int{"SLA hit rate": 1, "Missed their SLA": 0, "Rows": 5})
	for _, insert := range []string{
		`INSERT INTO outcomes (task_id, status, tenant, cluster, engine, sla_hit, total_ms, submitted_at, finished_at, k_offset, read_bytes, est_scan_bytes) VALUES
			('a', 'succeeded', 'tenant_a', 'batch', 'clickhouse', 1, 40, now64(3), now64(3), 1, 10, 20),
			('b', 'failed', 'tenant_a', 'interactive', 'clickhouse', 0, 90, now64(3), now64(3), 2, NULL, NULL)`,
		`INSERT INTO decisions (task_id, attempt, decision_id, kind, tenant, cluster, rejection_code, reasons, decided_at, k_offset) VALUES
			('a', 1, 'a/1', 'route', 'tenant_a', 'batch', '', ['history_failures'], now64(3), 1),
			('c', 1, 'c/1', 'reject', 'tenant_a', '', 'budget', ['budget'], now64(3), 2)`,
		`INSERT INTO attempts (task_id, attempt, seq, state, ended, ok, memory_kill, cluster, at, k_offset) VALUES
			('a', 1, 1, 'failed', 1, 0, 1, 'interactive', now64(3), 1), ('a', 2, 1, 'succeeded', 1, 1, 0, 'batch', now64(3), 2)`,
		`INSERT INTO queue_samples (cluster, source, at, queued, k_offset) VALUES ('batch', 'x', now64(3), 3, 1)`,
	} {
		require.NoError(t, conn.Exec(t.Context(), insert))
	}
	now = time.Now().UTC()
	run(t, "with rows", map[string]int{
		"SLA hit rate": 1, "SLA hit rate by cluster": 2, "Missed their SLA": 1, "Rejected Tasks": 1, "Rescued": 1,
		"Rejections by code": 1, "Queued and running, as the engines say": 1, "Decisions by first reason": 2, "Outcomes by the minute": 2,
	})

	board := dashboards(t)["sla.json"]
	for _, p := range board.Panels {
		if p.Title == "SLA hit rate" {
			got, err := rows(t.Context(), conn, grafana(t, p.Targets[0].RawSQL, now, false))
			require.NoError(t, err)
			require.Equal(t, []any{0.5, uint64(2)}, got.values[0])
		}
	}
}

// answer is the result of a query.
type answer struct {
	columns []driver.ColumnType
	values  [][]any
}

func rows(ctx context.Context, conn driver.Conn, sql string) (answer, error) {
	result, err := conn.Query(ctx, sql)
	if err != nil {
		return answer{}, fmt.Errorf("%w\n%s", err, sql)
	}
	defer func() { _ = result.Close() }()
	out := answer{columns: result.ColumnTypes()}
	for result.Next() {
		pointers := make([]any, len(out.columns))
		for i, c := range out.columns {
			pointers[i] = reflect.New(c.ScanType()).Interface()
		}
		if err := result.Scan(pointers...); err != nil {
			return answer{}, err
		}
		row := make([]any, len(pointers))
		for i, p := range pointers {
			value := reflect.ValueOf(p).Elem()
			for value.Kind() == reflect.Pointer && !value.IsNil() {
				value = value.Elem()
			}
			row[i] = value.Interface()
		}
		out.values = append(out.values, row)
	}
	return out, result.Err()
}

// check looks at what the data source needs of a result: a time first in a series, and nothing that is no number.
func (a answer) check(t *testing.T, where, queryType string) {
	t.Helper()
	if queryType == "timeseries" && len(a.columns) > 0 { // over HTTP an empty answer has no columns
		require.Equal(t, "time", a.columns[0].Name(), where)
		require.Contains(t, a.columns[0].DatabaseTypeName(), "DateTime", where)
	}
	for _, row := range a.values {
		for i, v := range row {
			f, ok := v.(float64)
			require.False(t, ok && math.IsNaN(f), "%s: %s is NaN", where, a.columns[i].Name())
		}
	}
}

// grafana does what the data source does with a query before it sends it: macros and variables.
func grafana(t *testing.T, sql string, now time.Time, all bool) string {
	t.Helper()
	from, to := now.Add(-time.Hour).Unix(), now.Add(time.Minute).Unix()
	sql = macro(t, sql, "$__timeFilter", func(args []string) string {
		return fmt.Sprintf("%s >= toDateTime(%d) AND %s <= toDateTime(%d)", args[0], from, args[0], to)
	})
	sql = macro(t, sql, "$__timeInterval", func(args []string) string {
		return fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL 60 second)", args[0])
	})
	sql = macro(t, sql, "$__conditionalAll", func(args []string) string {
		if all {
			return "1=1"
		}
		return args[0]
	})
	sql = strings.NewReplacer("${tenant:singlequote}", "'tenant_a'", "${cluster:singlequote}", "'batch','interactive',''").Replace(sql)
	require.NotContains(t, sql, "$", "a macro that this test does not know")
	return sql
}

// macro replaces every call of a macro. Arguments may have calls in them.
func macro(t *testing.T, sql, name string, expand func(args []string) string) string {
	t.Helper()
	for {
		start := strings.Index(sql, name+"(")
		if start < 0 {
			return sql
		}
		open := start + len(name)
		depth, args, last := 0, []string{}, open+1
		for i := open; i < len(sql); i++ {
			switch c := sql[i]; {
			case c == '(':
				depth++
			case c == ')':
				depth--
			case c == ',' && depth == 1:
				args = append(args, strings.TrimSpace(sql[last:i]))
				last = i + 1
			}
			if depth == 0 {
				args = append(args, strings.TrimSpace(sql[last:i]))
				sql = sql[:start] + expand(args) + sql[i+1:]
				break
			}
		}
		require.Zero(t, depth, "%s has no end", name)
	}
}
