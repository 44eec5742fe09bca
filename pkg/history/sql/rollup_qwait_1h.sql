INSERT INTO qwait_1h (hour, cluster, queue, n, waited, q, rev)
SELECT
    toStartOfHour(ended_at) AS hour,
    cluster, queue,
    count(),
    countIf(queue_ms > 1000),
    quantilesTDigestState(0.5, 0.95)(assumeNotNull(queue_ms)),
    {rev:UInt64}
FROM attempt_ends FINAL
WHERE toStartOfHour(ended_at) IN {hours:Array(DateTime('UTC'))} AND queue_ms IS NOT NULL
GROUP BY hour, cluster, queue
