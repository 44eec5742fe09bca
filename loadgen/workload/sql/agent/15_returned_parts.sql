SELECT l_partkey, p_name, p_brand, sum(l_quantity) AS quantity FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey INNER JOIN tpch.part ON l_partkey = p_partkey
WHERE o_custkey = :1 AND l_returnflag = 'R' GROUP BY l_partkey, p_name, p_brand ORDER BY quantity DESC, l_partkey LIMIT 10
