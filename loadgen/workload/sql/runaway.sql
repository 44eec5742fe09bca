SELECT custkey, count() AS events, sum(revenue) AS revenue
FROM tpch.events
WHERE event_date BETWEEN toDate('1998-12-31') - INTERVAL :1 DAY AND toDate('1998-12-31')
GROUP BY custkey
ORDER BY revenue DESC, custkey
LIMIT 20
