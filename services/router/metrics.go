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
	policyRefused  prometheus.Gauge
	latches        *prometheus.GaugeVec
	inputs         *prometheus.CounterVec
	budgetRecords  *prometheus.CounterVec
	budgetWait     prometheus.Histogram
	leasesLost     prometheus.Counter
	passedOn       prometheus.Counter
	overshoot      *prometheus.HistogramVec
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
		latches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pointsman_router_latch", Help: "The policy's latches: 1 on, 0 off, -1 not known.",
		}, []string{"latch"}),
		policyRefused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pointsman_router_policy_refused", Help: "1 while the policy file has faults and an older policy is in force.",
		}),
		inputs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_inputs_total", Help: "Inputs of decisions, kept for replay or not: written, skipped, too_large, failed.",
		}, []string{"result"}),
		budgetRecords: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pointsman_router_budget_records_total", Help: "Records of sessions' budgets that stand: reserve, refuse, settle, balance, close.",
		}, []string{"kind"}),
		budgetWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pointsman_router_budget_wait_seconds", Help: "From a task of a session with a budget read to its decision acknowledged.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		leasesLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pointsman_router_budget_leases_lost_total", Help: "Partitions whose budgets another router took while this one had them.",
		}),
		passedOn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pointsman_router_passed_on_total", Help: "Tasks that came on another partition than their session's and were written to that.",
		}),
		overshoot: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pointsman_router_quota_overshoot", Help: "By how much a tenant or principal was over a quota when another router's decision became known.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 12),
		}, []string{"quota"}),
	}
	if reg != nil {
		reg.MustRegister(m.budgetRecords, m.budgetWait, m.leasesLost, m.passedOn, m.overshoot)
		reg.MustRegister(m.decisions, m.decideSeconds, m.routeSeconds, m.faults, m.profileLookups, m.profileSeconds, m.policyReloads, m.policyRefused, m.latches, m.inputs)
	}
	return m
}

// countSessions shows how many accounts there are.
func (m *metrics) countSessions(reg prometheus.Registerer, count func() int) {
	if reg == nil {
		return
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pointsman_router_budget_sessions", Help: "Sessions with an account on the partitions of this router.",
	}, func() float64 { return float64(count()) }))
}
