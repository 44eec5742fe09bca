-- What history says of the fingerprints given, per engine and cluster, in one query: all buckets of parameters together (the
-- empty bucket), and each of those with the most runs by itself.
--
-- Hours up to the tail come from the rollups, at the revision that counts. The tail, the newest one to two hours, is read
-- from the rows themselves: a memory kill that was stored a moment ago is in it, however far the rollups are behind.
-- The revisions are a list and not a join, which would cost as much as all the rest; an hour without one does not count.
-- kill_hour and the three arrays give the successes later than the newest memory kill.
WITH (
    SELECT (arrayPushBack(groupArray(hour), toDateTime(0, 'UTC')), arrayPushBack(groupArray(counts), toUInt64(0))) -- never empty
    FROM (SELECT hour, max(rev) AS counts FROM rollup_rev WHERE hour >= {from:DateTime('UTC')} GROUP BY hour)
) AS revisions
SELECT
    fingerprint, engine, cluster, bucket,
    a.runs, a.successes, a.memory_kills, a.ok_after_kill,
    s.n, s.hits,
    a.exec_n, a.exec_sum, a.exec_q[1], a.exec_q[2],
    a.read_n, a.read_sum, a.stop_n, a.stop_sum, a.peak_n, a.peak_max
FROM
(
    SELECT
        fingerprint, engine, cluster, bucket,
        sum(runs) AS runs, sum(successes) AS successes, sum(memory_kills) AS memory_kills,
        maxIf(hour, p.memory_kills > 0) AS kill_hour,
        if(memory_kills = 0, successes, arraySum(arrayMap(
            (h, ok, after) -> multiIf(h > kill_hour, ok, h = kill_hour, after, 0),
            groupArray(hour), groupArray(p.successes), groupArray(p.ok_after_kill)))) AS ok_after_kill,
        sum(exec_n) AS exec_n, sum(exec_sum) AS exec_sum, quantilesTDigestIfMerge(0.5, 0.95)(p.exec_q) AS exec_q,
        sum(read_n) AS read_n, sum(read_sum) AS read_sum, sum(stop_n) AS stop_n, sum(stop_sum) AS stop_sum, sum(peak_n) AS peak_n, max(peak_max) AS peak_max
    FROM
    (
        SELECT r.hour AS hour, fingerprint, engine, cluster, '' AS bucket, runs, successes, memory_kills, ok_after_kill,
            exec_n, exec_sum, exec_q, read_n, read_sum, stop_n, stop_sum, peak_n, peak_max
        FROM attempt_1h AS r FINAL
        WHERE r.rev >= transform(r.hour, revisions.1, revisions.2, 18446744073709551615) AND r.hour >= {from:DateTime('UTC')} AND r.hour < {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        UNION ALL
        SELECT r.hour AS hour, fingerprint, engine, cluster, toString(bucket), runs, successes, memory_kills, ok_after_kill,
            exec_n, exec_sum, exec_q, read_n, read_sum, stop_n, stop_sum, peak_n, peak_max
        FROM attempt_bucket_1h AS r FINAL
        WHERE r.rev >= transform(r.hour, revisions.1, revisions.2, 18446744073709551615) AND r.hour >= {from:DateTime('UTC')} AND r.hour < {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        UNION ALL
        SELECT
            toStartOfHour(ended_at) AS hour, fingerprint, engine, cluster, arrayJoin(if(bucket = '', [''], ['', toString(bucket)])) AS each,
            count(), countIf(ok), countIf(memory_kill) AS kills,
            if(kills = 0, countIf(ok), arrayCount(t -> t > maxIf(ended_at, memory_kill), groupArrayIf(ended_at, ok))),
            countIf(ok AND exec_ms IS NOT NULL),
            sumIf(toFloat64(assumeNotNull(exec_ms)), ok AND exec_ms IS NOT NULL),
            quantilesTDigestIfState(0.5, 0.95)(assumeNotNull(exec_ms), ok AND exec_ms IS NOT NULL),
            countIf(ok AND read_bytes IS NOT NULL),
            sumIf(toFloat64(assumeNotNull(read_bytes)), ok AND read_bytes IS NOT NULL),
            countIf(error_class IN {stops:Array(String)} AND exec_ms IS NOT NULL),
            sumIf(toFloat64(assumeNotNull(exec_ms)), error_class IN {stops:Array(String)} AND exec_ms IS NOT NULL),
            countIf(peak_memory_bytes IS NOT NULL),
            maxIf(assumeNotNull(peak_memory_bytes), peak_memory_bytes IS NOT NULL)
        FROM attempt_ends FINAL
        WHERE ended_at >= {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        GROUP BY hour, fingerprint, engine, cluster, each
    ) AS p
    GROUP BY fingerprint, engine, cluster, bucket
) AS a
FULL JOIN
(
    SELECT fingerprint, engine, cluster, bucket, sum(n) AS n, sum(hits) AS hits
    FROM
    (
        SELECT fingerprint, engine, cluster, '' AS bucket, n, hits
        FROM sla_1h AS r FINAL
        WHERE r.rev >= transform(r.hour, revisions.1, revisions.2, 18446744073709551615) AND r.hour >= {from:DateTime('UTC')} AND r.hour < {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        UNION ALL
        SELECT fingerprint, engine, cluster, toString(bucket), n, hits
        FROM sla_bucket_1h AS r FINAL
        WHERE r.rev >= transform(r.hour, revisions.1, revisions.2, 18446744073709551615) AND r.hour >= {from:DateTime('UTC')} AND r.hour < {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        UNION ALL
        SELECT fingerprint, engine, cluster, arrayJoin(if(bucket = '', [''], ['', toString(bucket)])) AS each, count(), countIf(sla_hit)
        FROM outcomes FINAL
        WHERE finished_at >= {tail:DateTime('UTC')} AND fingerprint IN (SELECT unhex(arrayJoin({fingerprints:Array(String)})))
        GROUP BY fingerprint, engine, cluster, each
    )
    GROUP BY fingerprint, engine, cluster, bucket
) AS s USING (fingerprint, engine, cluster, bucket)
ORDER BY greatest(a.runs, s.n) DESC, bucket
LIMIT 64 BY fingerprint, engine, cluster
