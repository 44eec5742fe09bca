-- What the sources saw of the clusters, one row per observation. NULL is absent: nobody knew.

-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS queue_samples {{ON_CLUSTER}}
(
    cluster            LowCardinality(String),
    source             LowCardinality(String),
    at                 DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    healthy            Nullable(Bool),
    ready              Nullable(Bool),
    replicas           Nullable(Float64),
    ready_replicas     Nullable(Float64),
    wake_ms            Nullable(Float64),
    queued             Nullable(Float64),
    running            Nullable(Float64),
    slots              Nullable(Float64),
    est_wait_ms        Nullable(Float64),
    est_wait_source    LowCardinality(String) COMMENT 'the estimator that spoke',
    oldest_queued_ms   Nullable(Float64),
    done_per_second    Nullable(Float64),
    memory_used_bytes  Nullable(Float64),
    other              Map(LowCardinality(String), Float64) COMMENT 'facts this version has no column for',
    stale              Array(LowCardinality(String)) COMMENT 'facts whose number was stale already when it was sent',
    at_event           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ts_clamped         Bool,
    k_partition        Int32,
    k_offset           UInt64,
    k_ts               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    schema_ver         UInt16,
    ingested_at        DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    version            UInt64 MATERIALIZED bitNot(k_offset)
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toYYYYMMDD(at)
ORDER BY (cluster, source, at)
TTL toDateTime(at) + INTERVAL 14 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- +goose Down
DROP TABLE IF EXISTS queue_samples {{ON_CLUSTER}};
