SELECT n_name AS nation, sum(o_totalprice) AS revenue
FROM tpch.orders
INNER JOIN tpch.customer ON o_custkey = c_custkey
INNER JOIN tpch.nation ON c_nationkey = n_nationkey
WHERE o_orderdate > toDate('1998-08-02') - INTERVAL :1 DAY
GROUP BY nation
ORDER BY revenue DESC
LIMIT 10
