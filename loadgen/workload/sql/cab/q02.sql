WITH offers AS (
    SELECT ps_partkey, ps_suppkey, ps_supplycost
    FROM tpch.partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM tpch.part WHERE p_size = :1 AND p_type LIKE '%' || :2)
      AND ps_suppkey IN (
        SELECT s_suppkey
        FROM tpch.supplier
        INNER JOIN tpch.nation ON s_nationkey = n_nationkey
        INNER JOIN tpch.region ON n_regionkey = r_regionkey
        WHERE r_name = :3)
)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM offers AS o
INNER JOIN (SELECT ps_partkey, min(ps_supplycost) AS lowest FROM offers GROUP BY ps_partkey) AS c
    ON o.ps_partkey = c.ps_partkey AND o.ps_supplycost = c.lowest
INNER JOIN tpch.part ON p_partkey = o.ps_partkey
INNER JOIN tpch.supplier ON s_suppkey = o.ps_suppkey
INNER JOIN tpch.nation ON n_nationkey = s_nationkey
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100
