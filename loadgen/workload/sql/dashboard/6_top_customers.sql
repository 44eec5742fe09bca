SELECT o_custkey AS customer, sum(o_totalprice) AS revenue
FROM tpch.orders
WHERE o_orderdate > toDate('1998-08-02') - INTERVAL :1 DAY
GROUP BY customer
ORDER BY revenue DESC, customer
LIMIT 10
