SELECT nation, count() AS events FROM tpch.events
WHERE event_date BETWEEN toDate(:3) AND toDate(:3) + INTERVAL 30 DAY GROUP BY nation ORDER BY events DESC
