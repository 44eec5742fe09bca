WITH sold AS (
    SELECT l_partkey, l_suppkey, 0.5 * sum(l_quantity) AS half
    FROM tpch.lineitem
    WHERE l_shipdate >= toDate(:2)
      AND l_shipdate < toDate(:2) + INTERVAL 1 YEAR
      AND l_partkey IN (SELECT p_partkey FROM tpch.part WHERE p_name LIKE :1 || '%')
    GROUP BY l_partkey, l_suppkey
)
SELECT s_name, s_address
FROM tpch.supplier
INNER JOIN tpch.nation ON s_nationkey = n_nationkey
WHERE n_name = :3
  AND s_suppkey IN (
    SELECT ps_suppkey
    FROM tpch.partsupp
    INNER JOIN sold ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
    WHERE ps_availqty > half)
ORDER BY s_name
