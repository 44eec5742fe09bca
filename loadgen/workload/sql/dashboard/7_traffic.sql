SELECT event_type, count() AS events, sum(revenue) AS revenue
FROM tpch.events
WHERE event_date > toDate('1998-12-31') - INTERVAL :1 DAY
GROUP BY event_type
ORDER BY events DESC
