package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pointsman/pointsman/pkg/telemetry/buildinfo"
)

// newRegistry has what every process shows: the Go runtime, the process and the build.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := buildinfo.Read()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "pointsman_build_info",
		Help:        "Always 1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "go": build.Go},
	})
	info.Set(1)
	registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}
