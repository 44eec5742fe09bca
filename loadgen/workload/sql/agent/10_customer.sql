SELECT c_custkey, c_name, n_name AS nation, c_mktsegment, c_acctbal FROM tpch.customer
INNER JOIN tpch.nation ON c_nationkey = n_nationkey WHERE c_custkey = :1
