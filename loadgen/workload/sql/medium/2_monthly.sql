SELECT nation, toStartOfMonth(event_date) AS month, uniq(session_id) AS sessions, countIf(match(page, '^/search\\?q=[a-z]*(e|a)[a-z]*')) AS searches,
    countIf(event_type = 'purchase') AS purchases, quantiles(0.5, 0.95)(duration_ms) AS ms, sum(revenue) AS revenue
FROM tpch.events
WHERE event_date >= toDate(:1)
GROUP BY nation, month
ORDER BY nation, month
