SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM tpch.lineitem
INNER JOIN tpch.part ON p_partkey = l_partkey
WHERE l_shipmode IN ('AIR', 'AIR REG')
  AND l_shipinstruct = 'DELIVER IN PERSON'
  AND ((p_brand = :1 AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        AND l_quantity BETWEEN :4 AND :4 + 10 AND p_size BETWEEN 1 AND 5)
    OR (p_brand = :2 AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        AND l_quantity BETWEEN :5 AND :5 + 10 AND p_size BETWEEN 1 AND 10)
    OR (p_brand = :3 AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        AND l_quantity BETWEEN :6 AND :6 + 10 AND p_size BETWEEN 1 AND 15))
