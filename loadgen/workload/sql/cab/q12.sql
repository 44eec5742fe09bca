SELECT l_shipmode,
    countIf(o_orderpriority IN ('1-URGENT', '2-HIGH')) AS high_line_count,
    countIf(o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low_line_count
FROM tpch.orders
INNER JOIN tpch.lineitem ON o_orderkey = l_orderkey
WHERE l_shipmode IN (:1, :2)
  AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate
  AND l_receiptdate >= toDate(:3)
  AND l_receiptdate < toDate(:3) + INTERVAL 1 YEAR
GROUP BY l_shipmode
ORDER BY l_shipmode
