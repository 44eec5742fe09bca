SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, toYear(l_shipdate) AS l_year,
    sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM tpch.lineitem
INNER JOIN tpch.supplier ON l_suppkey = s_suppkey
INNER JOIN tpch.nation AS n1 ON s_nationkey = n1.n_nationkey
INNER JOIN tpch.orders ON l_orderkey = o_orderkey
INNER JOIN tpch.customer ON o_custkey = c_custkey
INNER JOIN tpch.nation AS n2 ON c_nationkey = n2.n_nationkey
WHERE ((n1.n_name = :1 AND n2.n_name = :2) OR (n1.n_name = :2 AND n2.n_name = :1))
  AND l_shipdate BETWEEN toDate('1995-01-01') AND toDate('1996-12-31')
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year
