SELECT hour, cluster, queue, n, waited, p50_ms, p95_ms, est_n, est_p50_ms, est_p95_ms
FROM v_queue_wait
WHERE hour >= {from:DateTime('UTC')}
ORDER BY hour DESC, cluster, queue
LIMIT 10000
