SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey
INNER JOIN tpch.customer ON o_custkey = c_custkey
INNER JOIN tpch.supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
INNER JOIN tpch.nation ON s_nationkey = n_nationkey
INNER JOIN tpch.region ON n_regionkey = r_regionkey
WHERE r_name = :1
  AND o_orderdate >= toDate(:2)
  AND o_orderdate < toDate(:2) + INTERVAL 1 YEAR
GROUP BY n_name
ORDER BY revenue DESC
