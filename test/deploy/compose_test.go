package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// services are the five, with the port of their admin server.
var services = map[string]string{"intake": "9401", "router": "9402", "executor": "9403", "scaler": "9404", "profiler": "9405"}

type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       map[string]string `yaml:"build"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

func compose(t *testing.T) composeFile {
	t.Helper()
	var file composeFile
	// A key that a merge brings may be written again; the decoder would call that a duplicate.
	require.NoError(t, yaml.UnmarshalWithOptions(read(t, "docker-compose.yml"), &file, yaml.AllowDuplicateMapKey()))
	return file
}

func TestComposeFileIsValid(t *testing.T) {
	tool(t, "docker-compose", "-f", "docker-compose.yml", "config", "-q")
	file := compose(t)
	for name := range services {
		require.Contains(t, file.Services, name)
	}
	for _, name := range []string{"kafka", "clickhouse", "prometheus", "grafana"} {
		require.Contains(t, file.Services, name)
	}
}

func TestWhatComposeNamesExists(t *testing.T) {
	file := compose(t)
	for name, s := range file.Services {
		if s.Build != nil {
			exists(t, filepath.Join(s.Build["context"], s.Build["dockerfile"]), name)
		}
		for _, volume := range s.Volumes {
			source, target, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, ".") {
				exists(t, source, name)
				require.True(t, strings.HasSuffix(target, ":ro"), "%s: a file of the repository is mounted to be read only", name)
				continue
			}
			require.Contains(t, file.Volumes, source, name)
		}
		for other, d := range s.DependsOn {
			require.Contains(t, file.Services, other, name)
			if d.Condition == "service_healthy" {
				require.NotEmpty(t, file.Services[other].Healthcheck.Test, "%s waits for the health of %s, which has no check", name, other)
			}
		}
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: port %s would be open to the network", name, port)
		}
	}
}

func TestPortsAgree(t *testing.T) {
	file := compose(t)
	targets := string(read(t, "deploy/prometheus/prometheus.yml"))
	for name, port := range services {
		require.Equal(t, "http://127.0.0.1:"+port+"/readyz", file.Services[name].Healthcheck.Test[3], name)
		require.Contains(t, targets, fmt.Sprintf("%q", name+":"+port))
		require.Contains(t, string(read(t, "deploy/docker/config/"+name+".yaml")), "0.0.0.0:"+port, name)
	}
}

// The intake asks the router to explain, at the address that the router is told to serve.
func TestTheIntakeFindsTheRouter(t *testing.T) {
	url := regexp.MustCompile(`http://router:(\d+)/v1/explain`)
	for asks, serves := range map[string]string{
		"deploy/docker/config/intake.yaml": "deploy/docker/config/router.yaml",
		"deploy/k8s/config.yaml":           "deploy/k8s/config.yaml",
	} {
		found := url.FindStringSubmatch(string(read(t, asks)))
		require.Len(t, found, 2, asks)
		require.Contains(t, string(read(t, serves)), "0.0.0.0:"+found[1], serves)
	}
	require.Contains(t, string(read(t, "deploy/k8s/router.yaml")), "containerPort: "+url.FindStringSubmatch(string(read(t, "deploy/k8s/config.yaml")))[1])
}

// Each service checks its own configuration, with the variables that compose gives it.
func TestServicesAcceptTheirConfiguration(t *testing.T) {
	file := compose(t)
	for name := range services {
		t.Run(name, func(t *testing.T) {
			s := file.Services[name]
			require.Equal(t, []string{"pointsman-" + name, "-config", "/etc/pointsman/" + name + ".yaml"}, s.Command)
			var environ []string
			for key, value := range s.Environment {
				environ = append(environ, key+"="+expand(value))
			}
			slices.Sort(environ)
			stdout := check(t, name, "deploy/docker/config/"+name+".yaml", environ)
			require.Contains(t, stdout, "the configuration is valid")
		})
	}
}

var composeVariable = regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)

// expand gives the variables of compose their defaults: ${NAME:-default}.
func expand(value string) string { return composeVariable.ReplaceAllString(value, "$1") }

// The container that applies the topics runs the command as the command is.
func TestTopicsAreAppliedByACommandThatExists(t *testing.T) {
	command := compose(t).Services["topics"].Command
	require.Equal(t, "pointsman", command[0])
	help := exec.Command(build(t, "./services/pointsman"), "topics", "apply", "--help")
	out, err := help.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, word := range command[3:] {
		if strings.HasPrefix(word, "--") {
			require.Contains(t, string(out), word)
		}
	}
}

// build compiles a program of ours.
func build(t *testing.T, source string) string {
	t.Helper()
	binary := filepath.Join(binaries, filepath.Base(source))
	if _, err := os.Stat(binary); err == nil {
		return binary // built for a test before this one
	}
	cmd := exec.Command("go", "build", "-o", binary, source)
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// check runs a service's binary with -check-config.
func check(t *testing.T, name, file string, environ []string) string {
	t.Helper()
	binary := build(t, "./services/"+name+"/cmd/pointsman-"+name)
	cmd := exec.Command(binary, "-check-config", "-config", file)
	cmd.Dir = root(t)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s%s", stdout.String(), stderr.String())
	require.NotContains(t, stderr.String(), "warning", "a variable that names no key")
	return stdout.String()
}
