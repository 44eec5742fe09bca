SELECT nation, device, uniq(session_id) AS sessions, countIf(page LIKE '/search%') AS searches,
    countIf(event_type = 'purchase') AS purchases, quantiles(0.5, 0.95)(duration_ms) AS ms, sum(revenue) AS revenue
FROM tpch.events
WHERE event_date >= toDate(:1)
GROUP BY nation, device
ORDER BY revenue DESC
