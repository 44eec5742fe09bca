WITH stock AS (
    SELECT ps_partkey, ps_supplycost * ps_availqty AS worth
    FROM tpch.partsupp
    WHERE ps_suppkey IN (
        SELECT s_suppkey FROM tpch.supplier INNER JOIN tpch.nation ON s_nationkey = n_nationkey WHERE n_name = :1)
)
SELECT ps_partkey, sum(worth) AS value
FROM stock
GROUP BY ps_partkey
HAVING value > (SELECT toFloat64(sum(worth)) * (0.0001 / :2) FROM stock)
ORDER BY value DESC
