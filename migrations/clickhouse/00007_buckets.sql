-- Profiles by the size class of the parameters: the same text with other values may take thousands of times as long.
--
-- The rollups per fingerprint stay as they are, all buckets together; those per bucket stand beside them, under the same
-- revisions. A query without sized parameters has the empty bucket and no row there, as have the rows from before.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE decisions {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS bucket LowCardinality(String) AFTER fingerprint;
ALTER TABLE attempts {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS bucket LowCardinality(String) AFTER fingerprint;
ALTER TABLE outcomes {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS bucket LowCardinality(String) AFTER fingerprint;
ALTER TABLE attempt_ends {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS bucket LowCardinality(String) AFTER fingerprint;

ALTER TABLE attempt_ends_mv {{ON_CLUSTER}} MODIFY QUERY
SELECT
    task_id, attempt, seq, state, ok, memory_kill, engine, cluster, queue, resource, tenant, fingerprint, bucket,
    error_class, error_code, queue_ms, acquire_ms, exec_ms, read_bytes, peak_memory_bytes,
    at AS ended_at, ts_clamped, k_offset
FROM attempts
WHERE ended;

CREATE TABLE IF NOT EXISTS attempt_bucket_1h {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    fingerprint        String,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    bucket             LowCardinality(String),
    runs               UInt64,
    successes          UInt64,
    memory_kills       UInt64,
    ok_after_kill      UInt64 COMMENT 'as in attempt_1h, within the bucket',
    exec_n             UInt64,
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
ORDER BY (fingerprint, engine, cluster, bucket, hour)
TTL hour + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS sla_bucket_1h {{ON_CLUSTER}}
(
    hour               DateTime('UTC'),
    fingerprint        String,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    bucket             LowCardinality(String),
    n                  UInt64,
    hits               UInt64,
    rev                UInt64
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(rev)
PARTITION BY toYYYYMM(hour)
ORDER BY (fingerprint, engine, cluster, bucket, hour)
TTL hour + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- +goose Down
DROP TABLE IF EXISTS sla_bucket_1h {{ON_CLUSTER}};
DROP TABLE IF EXISTS attempt_bucket_1h {{ON_CLUSTER}};
ALTER TABLE attempt_ends_mv {{ON_CLUSTER}} MODIFY QUERY
SELECT
    task_id, attempt, seq, state, ok, memory_kill, engine, cluster, queue, resource, tenant, fingerprint,
    error_class, error_code, queue_ms, acquire_ms, exec_ms, read_bytes, peak_memory_bytes,
    at AS ended_at, ts_clamped, k_offset
FROM attempts
WHERE ended;
ALTER TABLE attempt_ends {{ON_CLUSTER}} DROP COLUMN IF EXISTS bucket;
ALTER TABLE outcomes {{ON_CLUSTER}} DROP COLUMN IF EXISTS bucket;
ALTER TABLE attempts {{ON_CLUSTER}} DROP COLUMN IF EXISTS bucket;
ALTER TABLE decisions {{ON_CLUSTER}} DROP COLUMN IF EXISTS bucket;
