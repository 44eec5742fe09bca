SELECT table, name, type FROM system.columns WHERE database = 'tpch' ORDER BY table, position
