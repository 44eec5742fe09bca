SELECT
    engine, cluster, toString(status) AS status, if(empty(reasons), '', toString(reasons[1])) AS reason,
    count() AS n, countIf(sla_hit) AS hits, countIf(attempts > 1) AS retried, countIf(rerouted) AS n_rerouted,
    countIf(queue_ms IS NOT NULL) AS queue_n,
    quantilesTDigestIf(0.5, 0.95)(assumeNotNull(queue_ms), queue_ms IS NOT NULL) AS queue,
    countIf(exec_ms IS NOT NULL) AS exec_n,
    quantilesTDigestIf(0.5, 0.95)(assumeNotNull(exec_ms), exec_ms IS NOT NULL) AS exec,
    countIf(NOT ts_clamped) AS total_n,
    quantilesTDigestIf(0.5, 0.95)(total_ms, NOT ts_clamped) AS total,
    countIf(read_bytes IS NOT NULL) AS read_n,
    sumIf(assumeNotNull(read_bytes), read_bytes IS NOT NULL) AS bytes_read
FROM outcomes FINAL
WHERE finished_at >= {from:DateTime('UTC')} AND finished_at < {to:DateTime('UTC')}
GROUP BY engine, cluster, status, reason
ORDER BY n DESC, engine, cluster, status, reason
