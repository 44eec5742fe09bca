-- Whole buckets of the hours given, under one new revision. A clock that was clamped says nothing of times.
INSERT INTO sla_1h
    (hour, fingerprint, engine, cluster, sla_tier, tenant, n, hits, fails, rerouted, retried_ok,
     total_n, q_total, queue_n, q_queue, scan_ratio_n, scan_ratio, scan_n, scan_bytes, rev)
SELECT
    toStartOfHour(finished_at) AS hour,
    fingerprint, engine, cluster, sla_tier, tenant,
    count(),
    countIf(sla_hit),
    countIf(status != 'succeeded'),
    countIf(rerouted),
    countIf(attempts > 1 AND status = 'succeeded'),
    countIf(NOT ts_clamped),
    quantilesTDigestIfState(0.5, 0.95)(total_ms, NOT ts_clamped),
    countIf(queue_ms IS NOT NULL),
    quantilesTDigestIfState(0.5, 0.95)(assumeNotNull(queue_ms), queue_ms IS NOT NULL),
    countIf(read_bytes IS NOT NULL AND est_scan_bytes > 0),
    quantilesTDigestIfState(0.5, 0.95)(
        assumeNotNull(read_bytes) / greatest(assumeNotNull(est_scan_bytes), 1.), ifNull(read_bytes IS NOT NULL AND est_scan_bytes > 0, 0)),
    countIf(read_bytes IS NOT NULL),
    sumIf(assumeNotNull(read_bytes), read_bytes IS NOT NULL),
    {rev:UInt64}
FROM outcomes FINAL
WHERE toStartOfHour(finished_at) IN {hours:Array(DateTime('UTC'))}
GROUP BY hour, fingerprint, engine, cluster, sla_tier, tenant
