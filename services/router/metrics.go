package router

import "github.com/prometheus/client_golang/prometheus"

// metrics are the router's own; those of its Kafka clients are pkg/stream's.
type metrics struct {
	decisions      *prometheus.CounterVec
	decideSeconds  prometheus.Histogram
	routeSeconds   prometheus.Histogram
	faults         *prometheus.CounterVec
	profileLookups *prometheus.CounterVec
	profileSeconds prometheus.Histogram
	policyReloads  *prometheus.CounterVec
	inputs         *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_decisions_total", Help: "Decisions by kind and first reason code.",
		}, []string{"kind", "reason"}),
		decideSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_router_decide_seconds", Help: "Time of one pure decision.",
			Buckets: prometheus.ExponentialBuckets(5e-6, 2, 14),
		}),
		routeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_router_route_seconds", Help: "From a batch of records read to its decisions acknowledged.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_faults_total", Help: "Records that could not be read, by class.",
		}, []string{"class"}),
		profileLookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_profile_lookups_total", Help: "Fingerprints looked up, by where the answer came from.",
		}, []string{"from"}),
		profileSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_router_profile_lookup_seconds", Help: "Time of one batch look-up in history.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
		policyReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_policy_reloads_total", Help: "Changed policy files, taken over or refused.",
		}, []string{"result"}),
		inputs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_inputs_total", Help: "Inputs of decisions, kept for replay or not: written, skipped, too_large, failed.",
		}, []string{"result"}),
	}
	if reg != nil {
		reg.MustRegister(m.decisions, m.decideSeconds, m.routeSeconds, m.faults, m.profileLookups, m.profileSeconds, m.policyReloads, m.inputs)
	}
	return m
}
