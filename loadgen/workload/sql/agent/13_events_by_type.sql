SELECT event_type, count() AS events, sum(revenue) AS revenue FROM tpch.events
WHERE custkey = :1 AND event_date >= toDate(:3) GROUP BY event_type ORDER BY events DESC
