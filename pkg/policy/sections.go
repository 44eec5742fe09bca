package policy

import "time"

var defaultOptions = []option[Defaults]{
	positiveSpanOption("sla_seconds", "The SLA of a request that states none.", func(d *Defaults) *time.Duration { return &d.SLA }).withDefault("30"),
	positiveSpanOption("timeout_seconds", "The timeout of a request that states none.", func(d *Defaults) *time.Duration { return &d.Timeout }).withDefault("600"),
	positiveSpanOption("signal_max_age_seconds", "How old a signal may be before it counts as stale.", func(d *Defaults) *time.Duration { return &d.SignalMaxAge }).withDefault("10"),
	choiceOption("no_candidate", "What becomes of a request that no engine can take: it is rejected, or it waits at one that is only busy or not ready.",
		[]NoCandidate{RejectTask, WaitForPool}, func(d *Defaults) *NoCandidate { return &d.NoCandidate }).withDefault("reject"),
}

var thresholdOptions = []option[Thresholds]{
	sizeOption("heavy_bytes", "The scan from which a query is heavy.", func(t *Thresholds) *int64 { return &t.HeavyBytes }).withDefault("500 GB"),
	countOption("heavy_join_tables", "The number of joined tables above which a query is heavy.", 1, 1000, func(t *Thresholds) *int64 { return &t.HeavyJoinTables }).withDefault("4"),
	numberOption("sla_target", "The probability of an SLA hit that is good enough.", 0.01, 0.999, func(t *Thresholds) *float64 { return &t.SLATarget }).withDefault("0.9"),
	countOption("history_min_runs", "The sample size from which a fingerprint's own history leads.", 1, 1e6, func(t *Thresholds) *int64 { return &t.HistoryMinRuns }).withDefault("3"),
	countOption("memory_kill_forgiven_after", "How many later successes outweigh a memory kill.", 1, 1e6, func(t *Thresholds) *int64 { return &t.MemoryKillForgivenAfter }).withDefault("3"),
	countOption("unseen_queue_ms", "The milliseconds that a queue which nobody sees is taken to cost, give or take a lot.", 1, 1e9, func(t *Thresholds) *int64 { return &t.UnseenQueueMs }).withDefault("5000"),
}
