SELECT countIf(l_receiptdate > l_commitdate) AS late, count() AS lines FROM tpch.lineitem
INNER JOIN tpch.orders ON l_orderkey = o_orderkey WHERE o_custkey = :1
