SELECT s_suppkey, s_name, count() AS returned FROM tpch.lineitem
INNER JOIN tpch.part ON l_partkey = p_partkey INNER JOIN tpch.supplier ON l_suppkey = s_suppkey
WHERE p_brand = :4 AND l_returnflag = 'R' GROUP BY s_suppkey, s_name ORDER BY returned DESC, s_suppkey LIMIT 5
