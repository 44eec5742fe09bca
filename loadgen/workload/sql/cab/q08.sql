SELECT toYear(o_orderdate) AS o_year,
    sumIf(l_extendedprice * (1 - l_discount), n2.n_name = :1) / sum(l_extendedprice * (1 - l_discount)) AS mkt_share
FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey
INNER JOIN tpch.customer ON o_custkey = c_custkey
INNER JOIN tpch.nation AS n1 ON c_nationkey = n1.n_nationkey
INNER JOIN tpch.region ON n1.n_regionkey = r_regionkey
INNER JOIN tpch.supplier ON l_suppkey = s_suppkey
INNER JOIN tpch.nation AS n2 ON s_nationkey = n2.n_nationkey
WHERE r_name = :2
  AND o_orderdate BETWEEN toDate('1995-01-01') AND toDate('1996-12-31')
  AND l_partkey IN (SELECT p_partkey FROM tpch.part WHERE p_type = :3)
GROUP BY o_year
ORDER BY o_year
