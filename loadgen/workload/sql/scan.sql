SELECT session_id, page, any(nation) AS nation, any(device) AS device, count() AS events,
    sum(revenue) AS revenue, avg(duration_ms) AS mean_ms, min(event_time) AS first_seen, max(event_time) AS last_seen
FROM tpch.events
WHERE event_date BETWEEN toDate(:1) AND toDate(:2)
GROUP BY session_id, page
ORDER BY revenue DESC, session_id, page
LIMIT 100
