-- Last of a recompute: from here on the new revision counts.
INSERT INTO rollup_rev (hour, rev, outcomes_in, attempts_in)
SELECT
    h.hour,
    {rev:UInt64},
    (SELECT count() FROM outcomes FINAL WHERE toStartOfHour(finished_at) IN {hours:Array(DateTime('UTC'))}),
    (SELECT count() FROM attempt_ends FINAL WHERE toStartOfHour(ended_at) IN {hours:Array(DateTime('UTC'))})
FROM (SELECT arrayJoin({hours:Array(DateTime('UTC'))}) AS hour) AS h
