SELECT 100.00 * sumIf(l_extendedprice * (1 - l_discount), p_type LIKE 'PROMO%')
    / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM tpch.lineitem
INNER JOIN tpch.part ON l_partkey = p_partkey
WHERE l_shipdate >= toDate(:1)
  AND l_shipdate < toDate(:1) + INTERVAL 1 MONTH
