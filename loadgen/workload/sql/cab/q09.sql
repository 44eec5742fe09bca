SELECT n_name AS nation, toYear(o_orderdate) AS o_year,
    sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS sum_profit
FROM tpch.lineitem
INNER JOIN tpch.partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
INNER JOIN tpch.orders ON o_orderkey = l_orderkey
INNER JOIN tpch.supplier ON s_suppkey = l_suppkey
INNER JOIN tpch.nation ON s_nationkey = n_nationkey
WHERE l_partkey IN (SELECT p_partkey FROM tpch.part WHERE p_name LIKE '%' || :1 || '%')
GROUP BY nation, o_year
ORDER BY nation, o_year DESC
