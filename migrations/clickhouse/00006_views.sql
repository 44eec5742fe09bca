-- Views for people and dashboards. All read FINAL, so that a repeat in a topic is one line here. A rate never stands
-- without its sample size; what is not known is NULL.

-- +goose NO TRANSACTION
-- +goose Up
CREATE VIEW IF NOT EXISTS v_tasks {{ON_CLUSTER}} AS
SELECT
    task_id,
    if(o.status = '', 'open', toString(o.status)) AS status,
    multiIf(o.status != '', o.tenant, d.tenant != '', d.tenant, r.tenant) AS tenant,
    multiIf(o.status != '', o.user, d.user != '', d.user, r.user) AS user,
    multiIf(o.status != '', o.session_id, d.session_id != '', d.session_id, r.session_id) AS session_id,
    toString(multiIf(o.status != '', o.session_class, d.session_class != '', d.session_class, r.session_class)) AS session_class,
    if(o.status != '', o.fingerprint, d.fingerprint) AS fingerprint,
    toString(if(o.status != '', o.statement, d.statement)) AS statement,
    if(o.status != '', o.attempts, NULL) AS attempts,
    d.decisions AS decisions,
    toString(if(o.status != '', o.engine, d.last_engine)) AS engine,
    toString(if(o.status != '', o.cluster, d.last_cluster)) AS cluster,
    toString(d.first_engine) AS first_engine,
    toString(d.first_cluster) AS first_cluster,
    toString(if(o.status != '', o.rule, d.rule)) AS rule,
    toString(if(o.status != '', o.verdict, d.verdict)) AS verdict,
    d.first_reasons AS first_reasons,
    if(o.status != '', o.reasons, d.last_reasons) AS reason_codes,
    toString(if(o.status != '', o.rejection_code, d.rejection_code)) AS rejection_code,
    if(o.status != '', o.rerouted, NULL) AS rerouted,
    multiIf(o.status != '', o.submitted_at, r.task_id != '', r.submitted_at, d.submitted_at) AS submitted_at,
    o.started_at AS started_at,
    if(o.status != '', o.finished_at, NULL) AS finished_at,
    o.queue_ms AS queue_ms,
    o.acquire_ms AS acquire_ms,
    o.exec_ms AS exec_ms,
    if(o.status != '' AND NOT o.ts_clamped, o.total_ms, NULL) AS total_ms,
    multiIf(o.status != '', o.sla_ms, d.sla_ms IS NOT NULL, d.sla_ms, r.sla_ms) AS sla_ms,
    if(o.status != '', o.sla_hit, NULL) AS sla_hit,
    o.read_bytes AS read_bytes,
    o.peak_memory_bytes AS peak_memory_bytes,
    toString(o.error_class) AS error_class,
    r.sql_text AS sql_text
FROM (SELECT * FROM requests FINAL WHERE kind = 'request') AS r
FULL JOIN
(
    SELECT
        task_id,
        count() AS decisions,
        argMin(tenant, (attempt, kind)) AS tenant, argMin(user, (attempt, kind)) AS user,
        argMin(session_id, (attempt, kind)) AS session_id, argMin(session_class, (attempt, kind)) AS session_class,
        argMin(fingerprint, (attempt, kind)) AS fingerprint, argMin(statement, (attempt, kind)) AS statement,
        argMin(engine, (attempt, kind)) AS first_engine, argMin(cluster, (attempt, kind)) AS first_cluster,
        argMax(engine, (attempt, kind)) AS last_engine, argMax(cluster, (attempt, kind)) AS last_cluster,
        argMin(reasons, (attempt, kind)) AS first_reasons, argMax(reasons, (attempt, kind)) AS last_reasons,
        argMax(rule, (attempt, kind)) AS rule, argMax(verdict, (attempt, kind)) AS verdict,
        argMax(rejection_code, (attempt, kind)) AS rejection_code,
        any(decisions.sla_ms) AS sla_ms, min(decisions.submitted_at) AS submitted_at
    FROM decisions FINAL
    WHERE kind != 'cancel'
    GROUP BY task_id
) AS d USING (task_id)
FULL JOIN (SELECT * FROM outcomes FINAL) AS o USING (task_id);

CREATE VIEW IF NOT EXISTS v_attempts {{ON_CLUSTER}} AS
SELECT
    task_id,
    attempt,
    argMax(state, seq) AS state,
    arrayMap(t -> t.2, arraySort(groupArray((seq, toString(attempts.state))))) AS states,
    argMax(engine, seq) AS engine, argMax(cluster, seq) AS cluster, argMax(queue, seq) AS queue, argMax(resource, seq) AS resource,
    any(tenant) AS tenant,
    any(fingerprint) AS fingerprint,
    max(attempts.ended) AS ended,
    max(attempts.ok) AS ok,
    max(attempts.memory_kill) AS memory_kill,
    argMax(error_class, seq) AS error_class, argMax(error_code, seq) AS error_code, argMax(error_name, seq) AS error_name,
    argMax(error_text, seq) AS error_text, argMax(remedy, seq) AS remedy, argMax(next_target, seq) AS next_target,
    argMax(external_id, (external_id != '', seq)) AS external_id,
    argMax(executor, seq) AS executor, max(epoch) AS epoch,
    min(at) AS first_at,
    max(at) AS last_at,
    argMaxIf(attempts.queue_ms, seq, attempts.queue_ms IS NOT NULL) AS queue_ms,
    argMaxIf(attempts.acquire_ms, seq, attempts.acquire_ms IS NOT NULL) AS acquire_ms,
    argMaxIf(attempts.exec_ms, seq, attempts.exec_ms IS NOT NULL) AS exec_ms,
    argMaxIf(attempts.read_bytes, seq, attempts.read_bytes IS NOT NULL) AS read_bytes,
    argMaxIf(attempts.peak_memory_bytes, seq, attempts.peak_memory_bytes IS NOT NULL) AS peak_memory_bytes
FROM attempts FINAL
GROUP BY task_id, attempt;

-- Windows move by whole hours. The bounds are Wilson's 95 % score interval; without a sample there is no rate.
CREATE VIEW IF NOT EXISTS v_sla_hit_rate {{ON_CLUSTER}} AS
WITH 1.959963984540054 AS z
SELECT
    fingerprint, engine, cluster, sla_tier, tenant,
    sumIf(n, in7) AS n7,
    sumIf(hits, in7) AS hits7,
    if(n7 = 0, NULL, hits7 / n7) AS rate7,
    if(n7 = 0, NULL, greatest(0, (rate7 + z * z / (2 * n7) - z * sqrt((rate7 * (1 - rate7) + z * z / (4 * n7)) / n7)) / (1 + z * z / n7))) AS low7,
    if(n7 = 0, NULL, least(1, (rate7 + z * z / (2 * n7) + z * sqrt((rate7 * (1 - rate7) + z * z / (4 * n7)) / n7)) / (1 + z * z / n7))) AS high7,
    sum(s.n) AS n30,
    sum(s.hits) AS hits30,
    if(n30 = 0, NULL, hits30 / n30) AS rate30,
    if(n30 = 0, NULL, greatest(0, (rate30 + z * z / (2 * n30) - z * sqrt((rate30 * (1 - rate30) + z * z / (4 * n30)) / n30)) / (1 + z * z / n30))) AS low30,
    if(n30 = 0, NULL, least(1, (rate30 + z * z / (2 * n30) + z * sqrt((rate30 * (1 - rate30) + z * z / (4 * n30)) / n30)) / (1 + z * z / n30))) AS high30,
    if(sumIf(total_n, in7) = 0, NULL, quantilesTDigestIfMergeIf(0.5, 0.95)(q_total, in7)[1]) AS total_ms_p50_7,
    if(sumIf(total_n, in7) = 0, NULL, quantilesTDigestIfMergeIf(0.5, 0.95)(q_total, in7)[2]) AS total_ms_p95_7,
    max(s.hour) AS last_hour
FROM
(
    SELECT s.*, s.hour >= toStartOfHour(now('UTC')) - INTERVAL 7 DAY AS in7
    FROM sla_1h AS s FINAL
    INNER JOIN (SELECT hour, max(rev) AS counts FROM rollup_rev GROUP BY hour) AS v ON s.hour = v.hour
    WHERE s.rev >= v.counts AND s.hour >= toStartOfHour(now('UTC')) - INTERVAL 30 DAY
) AS s
GROUP BY fingerprint, engine, cluster, sla_tier, tenant;

-- Measured wait of the attempts that ended in an hour, beside what was predicted for those decided in it.
CREATE VIEW IF NOT EXISTS v_queue_wait {{ON_CLUSTER}} AS
SELECT
    m.hour AS hour, m.cluster AS cluster, m.queue AS queue, m.n AS n, m.waited AS waited,
    m.q[1] AS p50_ms, m.q[2] AS p95_ms,
    e.n AS est_n, if(e.n = 0, NULL, e.q[1]) AS est_p50_ms, if(e.n = 0, NULL, e.q[2]) AS est_p95_ms
FROM
(
    SELECT w.hour AS hour, w.cluster AS cluster, w.queue AS queue, sum(w.n) AS n, sum(w.waited) AS waited, quantilesTDigestMerge(0.5, 0.95)(w.q) AS q
    FROM qwait_1h AS w FINAL
    INNER JOIN (SELECT hour, max(rev) AS counts FROM rollup_rev GROUP BY hour) AS v ON w.hour = v.hour
    WHERE w.rev >= v.counts
    GROUP BY hour, cluster, queue
) AS m
LEFT JOIN
(
    SELECT toStartOfHour(decided_at) AS hour, cluster, queue, count() AS n, quantilesTDigest(0.5, 0.95)(assumeNotNull(est_queue_ms)) AS q
    FROM decisions FINAL
    WHERE kind = 'route' AND est_queue_ms IS NOT NULL
    GROUP BY hour, cluster, queue
) AS e ON m.hour = e.hour AND m.cluster = e.cluster AND m.queue = e.queue;

-- Over-routed: called heavy, and done in under five seconds. Under-routed: called light, and over its SLA, failed, or
-- killed by a memory limit on the way. Rescued: it succeeded elsewhere after a kill.
CREATE VIEW IF NOT EXISTS v_misroutes {{ON_CLUSTER}} AS
SELECT
    toStartOfHour(o.finished_at) AS hour,
    o.rule AS rule, o.verdict AS verdict, o.engine AS engine, o.cluster AS cluster,
    count() AS n,
    countIf(o.verdict = 'heavy' AND o.status = 'succeeded' AND ifNull(o.exec_ms < 5000, false)) AS over_routed,
    countIf(o.verdict = 'light' AND (o.status IN ('failed', 'expired') OR NOT o.sla_hit OR k.kills > 0)) AS under_routed,
    countIf(k.kills > 0) AS memory_killed,
    countIf(k.kills > 0 AND o.status = 'succeeded') AS rescued
FROM (SELECT * FROM outcomes FINAL WHERE status != 'rejected' AND status != 'cancelled') AS o
LEFT JOIN (SELECT task_id, countIf(memory_kill) AS kills FROM attempt_ends FINAL GROUP BY task_id HAVING kills > 0) AS k ON o.task_id = k.task_id
GROUP BY hour, rule, verdict, engine, cluster;

CREATE VIEW IF NOT EXISTS v_rejections {{ON_CLUSTER}} AS
SELECT
    decided_at, task_id, attempt, tenant, user, session_id, session_class, fingerprint,
    rejection_code, rejection_text, suggestion, reasons, est_scan_bytes, est_memory_bytes, rule
FROM decisions FINAL
WHERE kind = 'reject';

-- Why candidates were left out, per cluster and hour.
CREATE VIEW IF NOT EXISTS v_filtered_candidates {{ON_CLUSTER}} AS
SELECT
    toStartOfHour(decided_at) AS hour,
    c_engine AS engine, c_cluster AS cluster, c_code AS filter_code,
    count() AS n
FROM (SELECT * FROM decisions FINAL WHERE kind != 'cancel')
ARRAY JOIN candidates.engine AS c_engine, candidates.cluster AS c_cluster, candidates.filter_code AS c_code
WHERE c_code != ''
GROUP BY hour, engine, cluster, filter_code;

-- Tasks whose first attempt was killed by a memory limit, and whose later attempt succeeded.
CREATE VIEW IF NOT EXISTS v_rescued {{ON_CLUSTER}} AS
SELECT
    task_id,
    any(tenant) AS tenant,
    any(fingerprint) AS fingerprint,
    argMin(engine, attempt) AS killed_engine, argMin(cluster, attempt) AS killed_cluster,
    argMin(error_code, attempt) AS killed_code,
    argMinIf(attempt, attempt, ok) AS rescued_attempt,
    argMinIf(engine, attempt, ok) AS rescued_engine, argMinIf(cluster, attempt, ok) AS rescued_cluster,
    min(ended_at) AS killed_at,
    minIf(ended_at, ok) AS rescued_at
FROM attempt_ends FINAL
GROUP BY task_id
HAVING argMin(memory_kill, attempt) AND min(attempt) = 1 AND rescued_attempt > 1;

-- First decisions that history settled: a reason of the decision, or of the filter of a candidate, that names history.
CREATE VIEW IF NOT EXISTS v_routed_by_history {{ON_CLUSTER}} AS
SELECT
    decided_at, task_id, tenant, fingerprint, engine, cluster, reasons,
    arrayFilter(c -> c LIKE '%history%', arrayConcat(
        arrayMap(c -> toString(c), reasons),
        arrayMap(c -> toString(c), candidates.filter_code),
        arrayMap(c -> toString(c), candidates.lost_by))) AS history_codes,
    evidence_level, evidence_n
FROM decisions FINAL
WHERE kind = 'route' AND attempt = 1 AND arrayExists(c -> c LIKE '%history%', reasons);

-- Changes of state whose predecessor is not the one recorded before them: a hole in the log, or two owners at once.
CREATE VIEW IF NOT EXISTS v_attempt_gaps {{ON_CLUSTER}} AS
SELECT task_id, attempt, seq, prev_state, recorded_before, state, executor, epoch, at
FROM
(
    SELECT
        task_id, attempt, seq, toString(attempts.prev_state) AS prev_state, toString(attempts.state) AS state, executor, epoch, at,
        lagInFrame(toString(attempts.state)) OVER (PARTITION BY task_id, attempt ORDER BY seq) AS recorded_before
    FROM attempts FINAL
)
WHERE prev_state != '' AND recorded_before != '' AND recorded_before != prev_state;

-- Rows as they lie against rows that count. duplicates are repeats not merged yet; none of them is counted anywhere else.
CREATE VIEW IF NOT EXISTS v_pipeline_health {{ON_CLUSTER}} AS
SELECT
    raw.name AS name, raw.n AS raw_rows, f.n AS final_rows, raw.n - f.n AS duplicates,
    f.ids AS distinct_ids, f.n - f.ids AS conflicting, raw.clamped AS clamped, if(raw.n = 0, NULL, raw.newest) AS newest_event,
    if(raw.n = 0, NULL, raw.last_insert) AS last_insert, roll.computed_at AS rollups_computed_at
FROM
(
    SELECT 'requests' AS name, count() AS n, countIf(ts_clamped) AS clamped, max(submitted_at) AS newest, max(ingested_at) AS last_insert FROM requests
    UNION ALL SELECT 'decisions', count(), countIf(ts_clamped), max(decided_at), max(ingested_at) FROM decisions
    UNION ALL SELECT 'attempts', count(), countIf(ts_clamped), max(at), max(ingested_at) FROM attempts
    UNION ALL SELECT 'outcomes', count(), countIf(ts_clamped), max(finished_at), max(ingested_at) FROM outcomes
    UNION ALL SELECT 'queue_samples', count(), countIf(ts_clamped), max(at), max(ingested_at) FROM queue_samples
) AS raw
INNER JOIN
(
    SELECT 'requests' AS name, count() AS n, uniqExact(task_id, kind) AS ids FROM requests FINAL
    UNION ALL SELECT 'decisions', count(), uniqExact(decision_id) FROM decisions FINAL
    UNION ALL SELECT 'attempts', count(), uniqExact(task_id, attempt, seq) FROM attempts FINAL
    UNION ALL SELECT 'outcomes', count(), uniqExact(task_id) FROM outcomes FINAL
    UNION ALL SELECT 'queue_samples', count(), uniqExact(cluster, source, at) FROM queue_samples FINAL
) AS f ON raw.name = f.name
CROSS JOIN (SELECT maxOrNull(computed_at) AS computed_at FROM rollup_rev) AS roll;

-- +goose Down
DROP VIEW IF EXISTS v_pipeline_health {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_attempt_gaps {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_routed_by_history {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_rescued {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_filtered_candidates {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_rejections {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_misroutes {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_queue_wait {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_sla_hit_rate {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_attempts {{ON_CLUSTER}};
DROP VIEW IF EXISTS v_tasks {{ON_CLUSTER}};
