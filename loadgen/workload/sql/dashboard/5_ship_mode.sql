SELECT l_shipmode AS ship_mode, count() AS lines, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM tpch.lineitem
WHERE l_shipdate > toDate('1998-08-02') - INTERVAL :1 DAY
GROUP BY ship_mode
ORDER BY revenue DESC
