SELECT o_orderkey, partkey, any(o_custkey) AS customer, count() AS touches, sum(duration_ms) AS touched_ms,
    max(event_time) AS last_touch, any(o_totalprice) AS total_price
FROM tpch.events
INNER JOIN tpch.orders ON custkey = o_custkey
WHERE o_orderdate >= toDate(:1)
  AND event_type IN ('page_view', 'add_to_cart')
GROUP BY o_orderkey, partkey
ORDER BY touches DESC, o_orderkey, partkey
LIMIT 1000
