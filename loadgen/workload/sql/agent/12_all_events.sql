SELECT * FROM tpch.events WHERE custkey = :1
