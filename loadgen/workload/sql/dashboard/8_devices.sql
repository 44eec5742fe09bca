SELECT device, avg(duration_ms) AS mean_ms, countIf(event_type = 'purchase') / count() AS conversion
FROM tpch.events
WHERE event_date > toDate('1998-12-31') - INTERVAL :1 DAY
GROUP BY device
ORDER BY device
