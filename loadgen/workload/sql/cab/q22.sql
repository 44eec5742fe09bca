WITH chosen AS (
    SELECT c_custkey, c_acctbal, substring(c_phone, 1, 2) AS cntrycode
    FROM tpch.customer
    WHERE cntrycode IN (toString(:1), toString(:2), toString(:3), toString(:4), toString(:5), toString(:6), toString(:7))
)
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM chosen
WHERE c_acctbal > (SELECT avg(c_acctbal) FROM chosen WHERE c_acctbal > 0.00)
  AND c_custkey NOT IN (SELECT o_custkey FROM tpch.orders)
GROUP BY cntrycode
ORDER BY cntrycode
