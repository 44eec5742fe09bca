package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// object is what the manifests have in common.
type object struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
	Spec       struct {
		Template struct {
			Spec podSpec `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
	Data map[string]string `yaml:"data"`
}

type podSpec struct {
	EnableServiceLinks *bool            `yaml:"enableServiceLinks"`
	SecurityContext    map[string]any   `yaml:"securityContext"`
	Containers         []container      `yaml:"containers"`
	Volumes            []map[string]any `yaml:"volumes"`
}

type container struct {
	Name  string   `yaml:"name"`
	Image string   `yaml:"image"`
	Cmd   []string `yaml:"command"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	} `yaml:"ports"`
	VolumeMounts []struct {
		Name string `yaml:"name"`
	} `yaml:"volumeMounts"`
	SecurityContext map[string]any            `yaml:"securityContext"`
	Resources       map[string]map[string]any `yaml:"resources"`
}

func manifests(t *testing.T) []object {
	t.Helper()
	var kustomization struct {
		Resources []string `yaml:"resources"`
	}
	require.NoError(t, yaml.Unmarshal(read(t, "deploy/k8s/kustomization.yaml"), &kustomization))
	files, err := filepath.Glob(filepath.Join(root(t), "deploy/k8s/*.yaml"))
	require.NoError(t, err)
	require.Len(t, kustomization.Resources, len(files)-1, "a manifest that the kustomization leaves out")
	var out []object
	for _, name := range kustomization.Resources {
		out = append(out, documents[object](t, read(t, "deploy/k8s/"+name))...)
	}
	return out
}

func TestManifests(t *testing.T) {
	deployments := map[string]bool{}
	names := map[string]bool{}
	for _, o := range manifests(t) {
		name, _ := o.Metadata["name"].(string)
		require.NotEmpty(t, o.APIVersion, name)
		require.NotEmpty(t, name, o.Kind)
		require.False(t, names[o.Kind+name], "%s %s is there twice", o.Kind, name)
		names[o.Kind+name] = true
		pod := o.Spec.Template.Spec
		for _, c := range pod.Containers {
			require.Equal(t, "pointsman", c.Image, "the kustomization gives this name its registry and tag")
			require.NotNil(t, pod.EnableServiceLinks, name)
			require.False(t, *pod.EnableServiceLinks, name)
			require.Equal(t, true, pod.SecurityContext["runAsNonRoot"], name)
			require.Equal(t, true, c.SecurityContext["readOnlyRootFilesystem"], name)
			require.NotEmpty(t, c.Resources["limits"]["memory"], name)
			for _, mount := range c.VolumeMounts {
				require.True(t, slices.ContainsFunc(pod.Volumes, func(v map[string]any) bool { return v["name"] == mount.Name }), "%s mounts %s", name, mount.Name)
			}
		}
		if o.Kind == "Deployment" {
			deployments[name] = true
			require.Equal(t, "pointsman-"+name, pod.Containers[0].Cmd[0])
		}
	}
	for name := range services {
		require.True(t, deployments[name], "%s has no deployment", name)
	}
}

// The scaler's role must be for what the code patches.
func TestScalerMayDoWhatItDoes(t *testing.T) {
	role := string(read(t, "deploy/k8s/scaler.yaml"))
	code := string(read(t, "pkg/kube/kube.go"))
	for _, word := range []string{"disaggregated.cluster.doris.com", "dorisdisaggregatedclusters"} {
		require.Contains(t, role, word)
		require.Contains(t, code, word)
	}
}

func TestServicesAcceptTheVariablesOfTheManifests(t *testing.T) {
	var data map[string]string
	for _, o := range manifests(t) {
		if o.Kind == "ConfigMap" {
			data = o.Data
		}
	}
	require.NotEmpty(t, data)
	for name, port := range services {
		t.Run(name, func(t *testing.T) {
			prefix := "POINTSMAN_" + strings.ToUpper(name) + "_"
			require.Equal(t, "0.0.0.0:"+port, data[prefix+"TELEMETRY_ADMIN_ADDRESS"])
			var environ []string
			for key, value := range data {
				environ = append(environ, key+"="+value)
			}
			if manifest := string(read(t, "deploy/k8s/"+name+".yaml")); strings.Contains(manifest, prefix+"HISTORY_PASSWORD") {
				environ = append(environ, prefix+"HISTORY_PASSWORD=x")
			}
			file := "deploy/k8s/files/" + name + ".yaml"
			if _, err := os.Stat(filepath.Join(root(t), file)); err != nil {
				file = ""
			}
			require.Contains(t, check(t, name, file, environ), "the configuration is valid")
		})
	}
}
