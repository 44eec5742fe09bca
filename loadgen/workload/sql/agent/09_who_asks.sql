SELECT custkey, count() AS tickets FROM tpch.events
WHERE event_date BETWEEN toDate(:3) AND toDate(:3) + INTERVAL 30 DAY AND event_type = 'support'
GROUP BY custkey ORDER BY tickets DESC, custkey LIMIT 10
