SELECT c_count, count(*) AS custdist
FROM (
    SELECT c_custkey, countIf(o_orderkey > 0) AS c_count
    FROM tpch.customer
    LEFT JOIN (SELECT o_orderkey, o_custkey FROM tpch.orders WHERE o_comment NOT LIKE '%' || :1 || '%' || :2 || '%') AS o
        ON c_custkey = o_custkey
    GROUP BY c_custkey
) AS c_orders
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC
