SELECT event_date, count() AS tickets FROM tpch.events
WHERE event_date BETWEEN toDate(:3) AND toDate(:3) + INTERVAL 30 DAY AND event_type = 'support' AND nation = :2
GROUP BY event_date ORDER BY event_date
