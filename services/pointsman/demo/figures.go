package demo

// figure is one query that fills a part of the summary.
type figure struct {
	what string
	sql  string
	into func(*Summary) []any
}

// mine restricts a query to the Tasks of this run.
const mine = " startsWith(task_id, {prefix:String}) "

var figures = []figure{
	{
		"the outcomes", `SELECT count() FROM outcomes FINAL WHERE` + mine,
		func(s *Summary) []any { return []any{&s.Stored} },
	},
	{
		"the SLA hit rate", `SELECT count(), ifNotFinite(countIf(sla_hit) / count(), 0) FROM outcomes FINAL
WHERE status != 'rejected' AND` + mine,
		func(s *Summary) []any { return []any{&s.SLASamples, &s.SLAHitRate} },
	},
	{
		"the time from submission to start",
		`SELECT ifNotFinite(quantileExact(0.5)(ms), 0), ifNotFinite(quantileExact(0.99)(ms), 0) FROM
(SELECT toFloat64(dateDiff('millisecond', submitted_at, assumeNotNull(started_at))) AS ms FROM outcomes FINAL
 WHERE started_at IS NOT NULL AND NOT ts_clamped AND` + mine + `)`,
		func(s *Summary) []any { return []any{&s.P50SubmitToStartMs, &s.P99SubmitToStartMs} },
	},
	{
		"the rescued tasks", `SELECT uniqExact(task_id) FROM v_rescued WHERE killed_cluster = 'interactive' AND rescued_cluster = 'batch' AND` + mine,
		func(s *Summary) []any { return []any{&s.RescuedByBatch} },
	},
	{
		"the tasks routed by history",
		`SELECT uniqExact(task_id) FROM decisions FINAL WHERE attempt = 1 AND kind = 'route' AND has(reasons, 'history_memory_kill') AND` + mine,
		func(s *Summary) []any { return []any{&s.RoutedByHistory} },
	},
	{
		"the tasks that a budget rejected",
		`SELECT count() FROM outcomes FINAL WHERE status = 'rejected' AND startsWith(rejection_code, 'session_') AND` + mine,
		func(s *Summary) []any { return []any{&s.BudgetRejected} },
	},
	{
		"the tasks sent elsewhere for a queue",
		`SELECT uniqExact(task_id) FROM decisions FINAL WHERE kind = 'route' AND has(reasons, 'queue_wait_over_sla') AND` + mine,
		func(s *Summary) []any { return []any{&s.ReroutedForQueue} },
	},
	{
		"the tasks that survived the engine's death",
		`SELECT uniqExact(task_id) FROM attempts FINAL
WHERE ended AND cluster = 'interactive' AND error_class IN ('cluster_down', 'submit_unknown', 'lost', 'engine_start') AND` + mine + `
AND task_id IN (SELECT task_id FROM outcomes FINAL WHERE status = 'succeeded' AND` + mine + `)`,
		func(s *Summary) []any { return []any{&s.SurvivedEngineKill} },
	},
	{
		"the attempts", `SELECT uniqExact(attempt_id) FROM attempts FINAL WHERE ended AND` + mine,
		func(s *Summary) []any { return []any{&s.Attempts} },
	},
}

const routesSQL = `SELECT kind, cluster, if(empty(reasons), '', toString(reasons[1])) AS reason, uniqExact(task_id) AS tasks
FROM decisions FINAL WHERE attempt = 1 AND kind != 'cancel' AND` + mine + `
GROUP BY kind, cluster, reason ORDER BY kind DESC, cluster, tasks DESC`

const poolsSQL = `SELECT cluster, count() AS tasks, countIf(sla_hit) AS hits, hits / tasks AS hit_rate,
ifNotFinite(toFloat64(quantileExactIf(0.5)(assumeNotNull(queue_ms), queue_ms IS NOT NULL)), 0) AS queue_p50,
ifNotFinite(toFloat64(quantileExactIf(0.95)(assumeNotNull(queue_ms), queue_ms IS NOT NULL)), 0) AS queue_p95,
ifNotFinite(toFloat64(quantileExactIf(0.5)(assumeNotNull(exec_ms), exec_ms IS NOT NULL)), 0) AS exec_p50,
ifNotFinite(toFloat64(quantileExactIf(0.95)(assumeNotNull(exec_ms), exec_ms IS NOT NULL)), 0) AS exec_p95,
countIf(attempts > 1) AS retried
FROM outcomes FINAL WHERE cluster != '' AND` + mine + ` GROUP BY cluster ORDER BY cluster DESC`

const rejectionsSQL = `SELECT rejection_code, any(rejection_text) AS rejection_text, count() AS tasks FROM outcomes FINAL
WHERE status = 'rejected' AND` + mine + ` GROUP BY rejection_code ORDER BY tasks DESC LIMIT 5`
