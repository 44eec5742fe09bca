SELECT c_mktsegment AS segment, sum(o_totalprice) AS revenue
FROM tpch.orders
INNER JOIN tpch.customer ON o_custkey = c_custkey
WHERE o_orderdate > toDate('1998-08-02') - INTERVAL :1 DAY
GROUP BY segment
ORDER BY revenue DESC
