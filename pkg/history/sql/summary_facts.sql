SELECT
    (SELECT count() FROM requests FINAL WHERE kind = 'request' AND submitted_at >= {from:DateTime('UTC')} AND submitted_at < {to:DateTime('UTC')}) AS submitted,
    (SELECT (count(), countIf(sla_hit), countIf(status != 'rejected')) FROM outcomes FINAL
        WHERE finished_at >= {from:DateTime('UTC')} AND finished_at < {to:DateTime('UTC')}) AS ended,
    (SELECT count() FROM v_rescued WHERE rescued_at >= {from:DateTime('UTC')} AND rescued_at < {to:DateTime('UTC')}) AS rescued,
    (SELECT count() FROM v_routed_by_history WHERE decided_at >= {from:DateTime('UTC')} AND decided_at < {to:DateTime('UTC')}) AS by_history,
    (SELECT (groupArray(code), groupArray(n)) FROM (
        SELECT toString(rejection_code) AS code, count() AS n FROM v_rejections
        WHERE decided_at >= {from:DateTime('UTC')} AND decided_at < {to:DateTime('UTC')} GROUP BY code ORDER BY n DESC, code)) AS rejections
