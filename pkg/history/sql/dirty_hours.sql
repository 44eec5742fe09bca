SELECT d.hour
FROM (SELECT hour, max(mark) AS mark FROM dirty_hours GROUP BY hour) AS d
LEFT JOIN (SELECT hour, max(rev) AS rev FROM rollup_rev GROUP BY hour) AS r ON d.hour = r.hour
WHERE d.mark >= r.rev
ORDER BY d.hour
