SELECT l_returnflag, count() AS lines, sum(l_quantity) AS quantity FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey WHERE o_custkey = :1 GROUP BY l_returnflag ORDER BY l_returnflag
