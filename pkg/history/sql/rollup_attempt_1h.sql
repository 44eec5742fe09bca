INSERT INTO attempt_1h
    (hour, fingerprint, engine, cluster, runs, successes, memory_kills, ok_after_kill,
     exec_n, exec_sum, exec_q, read_n, read_sum, stop_n, stop_sum, peak_n, peak_max, rev)
SELECT
    toStartOfHour(ended_at) AS hour,
    fingerprint, engine, cluster,
    count(),
    countIf(ok),
    countIf(memory_kill) AS kills,
    if(kills = 0, countIf(ok), arrayCount(t -> t > maxIf(ended_at, memory_kill), groupArrayIf(ended_at, ok))),
    countIf(ok AND exec_ms IS NOT NULL),
    sumIf(toFloat64(assumeNotNull(exec_ms)), ok AND exec_ms IS NOT NULL),
    quantilesTDigestIfState(0.5, 0.95)(assumeNotNull(exec_ms), ok AND exec_ms IS NOT NULL),
    countIf(ok AND read_bytes IS NOT NULL),
    sumIf(toFloat64(assumeNotNull(read_bytes)), ok AND read_bytes IS NOT NULL),
    countIf(error_class IN {stops:Array(String)} AND exec_ms IS NOT NULL),
    sumIf(toFloat64(assumeNotNull(exec_ms)), error_class IN {stops:Array(String)} AND exec_ms IS NOT NULL),
    countIf(peak_memory_bytes IS NOT NULL),
    maxIf(assumeNotNull(peak_memory_bytes), peak_memory_bytes IS NOT NULL),
    {rev:UInt64}
FROM attempt_ends FINAL
WHERE toStartOfHour(ended_at) IN {hours:Array(DateTime('UTC'))}
GROUP BY hour, fingerprint, engine, cluster
