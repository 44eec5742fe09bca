SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM tpch.partsupp
INNER JOIN tpch.part ON p_partkey = ps_partkey
WHERE p_brand <> :1
  AND p_type NOT LIKE :2 || '%'
  AND p_size IN (:3, :4, :5, :6, :7, :8, :9, :10)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM tpch.supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size
