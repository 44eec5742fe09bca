SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey
WHERE o_custkey IN (SELECT c_custkey FROM tpch.customer WHERE c_mktsegment = :1)
  AND o_orderdate < toDate(:2)
  AND l_shipdate > toDate(:2)
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10
