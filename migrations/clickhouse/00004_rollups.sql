-- Rollups by the hour. A dirty hour is recomputed whole, from FINAL, under a new revision; rollup_rev says which revision
-- counts. So a replay, a late row or an overlap changes no number, and a bucket that became empty is not read any more
-- (rows of an older revision than the hour's are left out by every reader: rev >= the hour's).

-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS sla_1h {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    fingerprint        String,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    sla_tier           LowCardinality(String),
    tenant             String,
    n                  UInt64,
    hits               UInt64,
    fails              UInt64,
    rerouted           UInt64,
    retried_ok         UInt64,
    total_n            UInt64 COMMENT 'outcomes whose clocks can be trusted',
    q_total            AggregateFunction(quantilesTDigestIf(0.5, 0.95), UInt64, UInt8),
    queue_n            UInt64,
    q_queue            AggregateFunction(quantilesTDigestIf(0.5, 0.95), UInt64, UInt8),
    scan_ratio_n       UInt64,
    scan_ratio         AggregateFunction(quantilesTDigestIf(0.5, 0.95), Float64, UInt8) COMMENT 'bytes read / bytes estimated',
    scan_n             UInt64 COMMENT 'outcomes whose bytes are known',
    scan_bytes         UInt64,
    rev                UInt64
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(rev)
PARTITION BY toYYYYMM(hour)
ORDER BY (fingerprint, engine, cluster, sla_tier, tenant, hour)
TTL hour + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS attempt_1h {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    fingerprint        String,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    runs               UInt64,
    successes          UInt64,
    memory_kills       UInt64,
    ok_after_kill      UInt64 COMMENT 'successes of the hour later than its last memory kill; all of them without one',
    exec_n             UInt64 COMMENT 'successes whose time is known',
    exec_sum           Float64,
    exec_q             AggregateFunction(quantilesTDigestIf(0.5, 0.95), UInt64, UInt8),
    read_n             UInt64,
    read_sum           Float64,
    peak_n             UInt64,
    peak_max           UInt64,
    rev                UInt64
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(rev)
PARTITION BY toYYYYMM(hour)
ORDER BY (fingerprint, engine, cluster, hour)
TTL hour + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS qwait_1h {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    cluster            LowCardinality(String),
    queue              LowCardinality(String),
    n                  UInt64 COMMENT 'attempts whose wait is known',
    waited             UInt64 COMMENT 'of them those that waited over a second',
    q                  AggregateFunction(quantilesTDigest(0.5, 0.95), UInt64),
    rev                UInt64
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(rev)
PARTITION BY toYYYYMM(hour)
ORDER BY (cluster, queue, hour)
TTL hour + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS rollup_rev {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    rev                UInt64 COMMENT 'nanoseconds of the server''s clock before the hour was read',
    outcomes_in        UInt64,
    attempts_in        UInt64,
    computed_at        DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(rev)
PARTITION BY toYYYYMM(hour)
ORDER BY hour
TTL hour + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Marked after the rows are in and before the offsets are committed, so that no crash forgets an hour.
CREATE TABLE IF NOT EXISTS dirty_hours {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    mark               UInt64 DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9))),
    marked_at          DateTime('UTC') DEFAULT now()
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(mark)
ORDER BY hour
TTL marked_at + INTERVAL 180 DAY;

-- +goose Down
DROP TABLE IF EXISTS dirty_hours {{ON_CLUSTER}};
DROP TABLE IF EXISTS rollup_rev {{ON_CLUSTER}};
DROP TABLE IF EXISTS qwait_1h {{ON_CLUSTER}};
DROP TABLE IF EXISTS attempt_1h {{ON_CLUSTER}};
DROP TABLE IF EXISTS sla_1h {{ON_CLUSTER}};
