SELECT p_container, countIf(l_returnflag = 'R') / count() AS return_rate, count() AS lines FROM tpch.lineitem
INNER JOIN tpch.part ON l_partkey = p_partkey
WHERE p_brand = :4 AND l_shipdate >= toDate('1994-01-01') AND l_shipdate < toDate('1995-06-17') GROUP BY p_container ORDER BY return_rate DESC LIMIT 10
