INSERT INTO sla_bucket_1h (hour, fingerprint, engine, cluster, bucket, n, hits, rev)
SELECT
    toStartOfHour(finished_at) AS hour,
    fingerprint, engine, cluster, bucket,
    count(),
    countIf(sla_hit),
    {rev:UInt64}
FROM outcomes FINAL
WHERE toStartOfHour(finished_at) IN {hours:Array(DateTime('UTC'))} AND bucket != ''
GROUP BY hour, fingerprint, engine, cluster, bucket
