SELECT o_orderpriority AS priority, count() AS orders, sum(o_totalprice) AS revenue
FROM tpch.orders
WHERE o_orderdate > toDate('1998-08-02') - INTERVAL :1 DAY
GROUP BY priority
ORDER BY priority
