SELECT s_name, count(*) AS numwait
FROM tpch.lineitem AS l
INNER JOIN tpch.supplier ON s_suppkey = l.l_suppkey
INNER JOIN tpch.nation ON s_nationkey = n_nationkey
WHERE n_name = :1
  AND l.l_receiptdate > l.l_commitdate
  AND l.l_orderkey IN (SELECT o_orderkey FROM tpch.orders WHERE o_orderstatus = 'F')
  AND l.l_orderkey IN (
    SELECT l_orderkey
    FROM tpch.lineitem
    GROUP BY l_orderkey
    HAVING min(l_suppkey) < max(l_suppkey)
       AND minIf(l_suppkey, l_receiptdate > l_commitdate) = maxIf(l_suppkey, l_receiptdate > l_commitdate))
GROUP BY s_name
ORDER BY numwait DESC, s_name
LIMIT 100
