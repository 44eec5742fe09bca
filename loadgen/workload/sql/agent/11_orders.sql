SELECT o_orderkey, o_orderdate, o_orderstatus, o_totalprice FROM tpch.orders
WHERE o_custkey = :1 ORDER BY o_orderdate DESC LIMIT 20
