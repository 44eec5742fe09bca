SELECT nation, countIf(event_type = 'support') AS tickets, countIf(event_type = 'purchase') AS purchases FROM tpch.events
WHERE event_date BETWEEN toDate(:3) AND toDate(:3) + INTERVAL 30 DAY GROUP BY nation ORDER BY tickets DESC
