SELECT sum(l_extendedprice * l_discount) AS revenue
FROM tpch.lineitem
WHERE l_shipdate >= toDate(:1)
  AND l_shipdate < toDate(:1) + INTERVAL 1 YEAR
  AND l_discount * 100 BETWEEN :2 - 1 AND :2 + 1
  AND l_quantity < :3
