SELECT * FROM tpch.events WHERE event_date = toDate(:3) LIMIT 5
