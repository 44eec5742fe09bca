SELECT count() AS open_orders, sum(o_totalprice) AS worth FROM tpch.orders WHERE o_custkey = :1 AND o_orderstatus <> 'F'
