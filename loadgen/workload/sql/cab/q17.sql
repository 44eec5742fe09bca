WITH wanted AS (SELECT p_partkey FROM tpch.part WHERE p_brand = :1 AND p_container = :2)
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM tpch.lineitem AS l
INNER JOIN (
    SELECT l_partkey, 0.2 * avg(l_quantity) AS fifth
    FROM tpch.lineitem
    WHERE l_partkey IN (SELECT p_partkey FROM wanted)
    GROUP BY l_partkey
) AS a ON l.l_partkey = a.l_partkey
WHERE l.l_partkey IN (SELECT p_partkey FROM wanted)
  AND l.l_quantity < a.fifth
