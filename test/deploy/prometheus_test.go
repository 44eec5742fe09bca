package deploy

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

func TestPrometheusFiles(t *testing.T) {
	tool(t, "promtool", "check", "config", "deploy/prometheus/prometheus.yml")
	tool(t, "promtool", "test", "rules", "deploy/prometheus/rules_test.yml")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(read(t, "deploy/prometheus/rules/pointsman.yml"), &rules))
	source := metricNames(t)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["description"], "%s must say what to do", rule.Alert)
			require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
			requireMetrics(t, source, rule.Alert, rule.Expr)
		}
	}
}

var ours = regexp.MustCompile(`\bpointsman_[a-z0-9_]+`)

// requireMetrics fails for a metric of ours that no code has: an alert or panel on it would be silent for ever.
func requireMetrics(t *testing.T, source map[string]bool, where, expr string) {
	t.Helper()
	for _, name := range ours.FindAllString(expr, -1) {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		require.True(t, source[name] || source[base], "%s reads %s, which no package makes", where, name)
	}
}

// metricNames are the names that the code writes down.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{"pkg", "services"} {
		err := filepath.WalkDir(filepath.Join(root(t), dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, name := range ours.FindAllString(string(data), -1) {
				names[name] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	return names
}

func TestPrometheusPanels(t *testing.T) {
	source := metricNames(t)
	for name, board := range dashboards(t) {
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				if target.Expr == "" {
					continue
				}
				requireMetrics(t, source, name+": "+p.Title, target.Expr)
			}
		}
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "deploy/grafana/dashboards/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]dashboard{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var board dashboard
		require.NoError(t, json.Unmarshal(data, &board), file)
		out[filepath.Base(file)] = board
	}
	return out
}
