SELECT o_orderpriority, count(*) AS order_count
FROM tpch.orders
WHERE o_orderdate >= toDate(:1)
  AND o_orderdate < toDate(:1) + INTERVAL 3 MONTH
  AND o_orderkey IN (SELECT l_orderkey FROM tpch.lineitem WHERE l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority
