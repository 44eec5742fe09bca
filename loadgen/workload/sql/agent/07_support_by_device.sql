SELECT device, count() AS tickets, avg(duration_ms) AS mean_ms FROM tpch.events
WHERE event_date BETWEEN toDate(:3) AND toDate(:3) + INTERVAL 30 DAY AND event_type = 'support' AND nation = :2
GROUP BY device ORDER BY tickets DESC
