SELECT c_mktsegment, event_type, uniq(session_id) AS sessions, quantiles(0.5, 0.9, 0.99)(duration_ms) AS ms, sum(revenue) AS revenue
FROM tpch.events
INNER JOIN tpch.customer ON custkey = c_custkey
WHERE event_date >= toDate(:1)
GROUP BY c_mktsegment, event_type
ORDER BY revenue DESC
