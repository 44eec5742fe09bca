-- The ends of attempts, hour first, for the same reason as outcomes: profiles and queue waits are recomputed by the hour
-- and read by fingerprint for the newest hours. A view fills it from attempts. A block that reaches it twice does no
-- harm: it has a deduplication window of its own, and the rows replace each other by offset.

-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS attempt_ends {{ON_CLUSTER}}
(
    task_id            String,
    attempt            UInt16,
    seq                UInt32,
    state              LowCardinality(String),
    ok                 Bool,
    memory_kill        Bool,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    queue              LowCardinality(String),
    resource           LowCardinality(String),
    tenant             String,
    fingerprint        String,
    error_class        LowCardinality(String),
    error_code         LowCardinality(String),
    queue_ms           Nullable(UInt64),
    acquire_ms         Nullable(UInt64),
    exec_ms            Nullable(UInt64),
    read_bytes         Nullable(UInt64),
    peak_memory_bytes  Nullable(UInt64),
    ended_at           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ts_clamped         Bool,
    k_offset           UInt64,
    version            UInt64 MATERIALIZED bitNot(k_offset),
    INDEX by_fingerprint fingerprint TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toMonday(ended_at)
ORDER BY (toStartOfHour(ended_at), fingerprint, engine, cluster, task_id, attempt)
TTL toDateTime(ended_at) + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS attempt_ends_mv {{ON_CLUSTER}} TO attempt_ends AS
SELECT
    task_id, attempt, seq, state, ok, memory_kill, engine, cluster, queue, resource, tenant, fingerprint,
    error_class, error_code, queue_ms, acquire_ms, exec_ms, read_bytes, peak_memory_bytes,
    at AS ended_at, ts_clamped, k_offset
FROM attempts
WHERE ended;

-- +goose Down
DROP VIEW IF EXISTS attempt_ends_mv {{ON_CLUSTER}};
DROP TABLE IF EXISTS attempt_ends {{ON_CLUSTER}};
