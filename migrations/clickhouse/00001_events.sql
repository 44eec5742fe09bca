-- The four event tables: one row per event of a topic, the first record in the log wins.
--
-- k_partition and k_offset are the record's coordinates. version is the bitwise complement of the offset, so that
-- ReplacingMergeTree keeps the row with the lowest offset whatever was replayed, in whatever order. Partition keys come
-- from the event's own time (held against the record's, ts_clamped says so), never from the clock of the insert.
-- Nullable means that the number may be unknown; unknown is never stored as zero.

-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS requests {{ON_CLUSTER}}
(
    task_id            String,
    kind               LowCardinality(String) COMMENT 'request, or cancel for a wish to cancel the task',
    tenant             String,
    user               String,
    session_id         String,
    session_class      LowCardinality(String),
    tags               Array(String),
    dataset            String,
    query_type         LowCardinality(String),
    sql_text           String CODEC(ZSTD(6)),
    intent             String CODEC(ZSTD(6)),
    dialect            LowCardinality(String),
    catalog            String,
    schema_name        String,
    sla_ms             Nullable(UInt64) COMMENT 'NULL: the policy''s default counts',
    sla_tier           LowCardinality(String),
    timeout_ms         Nullable(UInt64),
    consistency        LowCardinality(String),
    commit_ts          Nullable(Int64),
    resource_hint      String,
    engine_hint        String,
    priority           Int32,
    idempotency_key    String,
    digest             String COMMENT 'of what is asked for: two rows of one id with different digests are a conflict',
    reason             String COMMENT 'of a cancel',
    submitted_at       DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    submitted_at_event Nullable(DateTime64(3, 'UTC')) COMMENT 'as the producer wrote it',
    extra              String COMMENT 'JSON of fields this version has no column for' CODEC(ZSTD(3)),
    ts_clamped         Bool,
    k_partition        Int32,
    k_offset           UInt64,
    k_ts               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    schema_ver         UInt16,
    ingested_at        DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    version            UInt64 MATERIALIZED bitNot(k_offset)
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toMonday(submitted_at)
ORDER BY (task_id, kind)
TTL toDateTime(submitted_at) + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS decisions {{ON_CLUSTER}}
(
    task_id            String,
    attempt            UInt16,
    decision_id        String,
    kind               LowCardinality(String) COMMENT 'route, reject or cancel',
    tenant             String,
    user               String,
    session_id         String,
    session_class      LowCardinality(String),
    fingerprint        String,
    statement          LowCardinality(String),
    read_only          Bool,
    tables             Array(String),
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    queue              LowCardinality(String),
    resource           LowCardinality(String),
    rule               LowCardinality(String),
    verdict            LowCardinality(String),
    policy_hash        String,
    reasons            Array(LowCardinality(String)) COMMENT 'codes, in the order given',
    reason_texts       Array(String),
    sla_ms             Nullable(UInt64),
    est_scan_bytes     Nullable(Float64),
    est_memory_bytes   Nullable(Float64),
    estimates          Map(LowCardinality(String), Float64) COMMENT 'all that were known',
    est_queue_ms       Nullable(Float64) COMMENT 'of the candidate chosen, as are the next five',
    est_acquire_ms     Nullable(Float64),
    est_exec_ms        Nullable(Float64),
    est_total_ms       Nullable(Float64),
    est_p_hit          Nullable(Float64),
    evidence_level     LowCardinality(String),
    evidence_n         Nullable(UInt64),
    propensity         Nullable(Float64),
    unknown            Array(LowCardinality(String)) COMMENT 'what could not be known when it was decided',
    signals            Map(String, Float64) COMMENT 'cluster.fact -> number, fresh ones only',
    signals_stale      Map(String, Float64),
    signals_missing    Array(String),
    candidates Nested(
        engine         LowCardinality(String),
        cluster        LowCardinality(String),
        queue          LowCardinality(String),
        resource       LowCardinality(String),
        rank           UInt16,
        filter_code    LowCardinality(String),
        filter_text    String,
        lost_by        LowCardinality(String),
        est_queue_ms   Nullable(Float64),
        est_total_ms   Nullable(Float64),
        p_hit          Nullable(Float64),
        level          LowCardinality(String),
        n              Nullable(UInt64),
        propensity     Float64
    ),
    fallbacks          Array(String),
    excluded           Array(String),
    rejection_code     LowCardinality(String),
    rejection_text     String,
    suggestion         String,
    task_digest        String,
    notify             Bool,
    decided_at         DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    decided_at_event   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    deadline           Nullable(DateTime64(3, 'UTC')),
    submitted_at       Nullable(DateTime64(3, 'UTC')),
    extra              String CODEC(ZSTD(3)),
    ts_clamped         Bool,
    k_partition        Int32,
    k_offset           UInt64,
    k_ts               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    schema_ver         UInt16,
    ingested_at        DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    version            UInt64 MATERIALIZED bitNot(k_offset),
    INDEX by_fingerprint fingerprint TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toMonday(decided_at)
ORDER BY (task_id, attempt, decision_id)
TTL toDateTime(decided_at) + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS attempts {{ON_CLUSTER}}
(
    task_id            String,
    attempt            UInt16,
    seq                UInt32,
    attempt_id         String,
    state              LowCardinality(String),
    prev_state         LowCardinality(String),
    ended              Bool COMMENT 'the state is an end of the attempt',
    ok                 Bool,
    memory_kill        Bool,
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    queue              LowCardinality(String),
    resource           LowCardinality(String),
    tenant             String,
    fingerprint        String,
    executor           LowCardinality(String),
    epoch              UInt64,
    external_id        String,
    error_class        LowCardinality(String),
    error_code         LowCardinality(String),
    error_name         LowCardinality(String),
    error_text         String CODEC(ZSTD(3)),
    remedy             LowCardinality(String),
    next_target        String,
    queue_ms           Nullable(UInt64),
    acquire_ms         Nullable(UInt64),
    exec_ms            Nullable(UInt64),
    deliver_ms         Nullable(UInt64),
    read_rows          Nullable(UInt64),
    read_bytes         Nullable(UInt64),
    result_rows        Nullable(UInt64),
    result_bytes       Nullable(UInt64),
    peak_memory_bytes  Nullable(UInt64),
    at                 DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    at_event           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    extra              String CODEC(ZSTD(3)),
    ts_clamped         Bool,
    k_partition        Int32,
    k_offset           UInt64,
    k_ts               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    schema_ver         UInt16,
    ingested_at        DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    version            UInt64 MATERIALIZED bitNot(k_offset),
    INDEX by_fingerprint fingerprint TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toMonday(at)
ORDER BY (task_id, attempt, seq)
TTL toDateTime(at) + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- Hour first: a dirty hour is recomputed from a narrow range, 7-26 ms against 1.2-2.6 s fingerprint-first.
CREATE TABLE IF NOT EXISTS outcomes {{ON_CLUSTER}}
(
    task_id            String,
    status             LowCardinality(String),
    tenant             String,
    user               String,
    session_id         String,
    session_class      LowCardinality(String),
    tags               Array(String),
    dataset            String,
    query_type         LowCardinality(String),
    fingerprint        String,
    statement          LowCardinality(String),
    tables             Array(String),
    engine             LowCardinality(String),
    cluster            LowCardinality(String),
    queue              LowCardinality(String),
    resource           LowCardinality(String),
    rule               LowCardinality(String),
    verdict            LowCardinality(String),
    reasons            Array(LowCardinality(String)),
    policy_hash        String,
    attempts           UInt16,
    rerouted           Bool,
    submitted_at       DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    started_at         Nullable(DateTime64(3, 'UTC')),
    finished_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    finished_at_event  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    total_ms           UInt64,
    queue_ms           Nullable(UInt64),
    acquire_ms         Nullable(UInt64),
    exec_ms            Nullable(UInt64),
    deliver_ms         Nullable(UInt64),
    read_rows          Nullable(UInt64),
    read_bytes         Nullable(UInt64),
    result_rows        Nullable(UInt64),
    result_bytes       Nullable(UInt64),
    peak_memory_bytes  Nullable(UInt64),
    sla_ms             UInt64,
    sla_tier           LowCardinality(String),
    sla_hit            Bool,
    est_scan_bytes     Nullable(Float64),
    est_memory_bytes   Nullable(Float64),
    estimates          Map(LowCardinality(String), Float64),
    error_class        LowCardinality(String),
    error_code         LowCardinality(String),
    error_name         LowCardinality(String),
    error_text         String CODEC(ZSTD(3)),
    rejection_code     LowCardinality(String),
    rejection_text     String CODEC(ZSTD(3)),
    suggestion         String CODEC(ZSTD(3)),
    result_format      LowCardinality(String),
    result_truncated   Bool,
    extra              String CODEC(ZSTD(3)),
    ts_clamped         Bool,
    k_partition        Int32,
    k_offset           UInt64,
    k_ts               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    schema_ver         UInt16,
    ingested_at        DateTime64(3, 'UTC') DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    version            UInt64 MATERIALIZED bitNot(k_offset),
    INDEX by_task task_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_fingerprint fingerprint TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{ENGINE_PREFIX}}ReplacingMergeTree(version)
PARTITION BY toMonday(finished_at)
ORDER BY (toStartOfHour(finished_at), fingerprint, engine, cluster, sla_tier, tenant, task_id)
TTL toDateTime(finished_at) + INTERVAL 180 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- +goose Down
DROP TABLE IF EXISTS outcomes {{ON_CLUSTER}};
DROP TABLE IF EXISTS attempts {{ON_CLUSTER}};
DROP TABLE IF EXISTS decisions {{ON_CLUSTER}};
DROP TABLE IF EXISTS requests {{ON_CLUSTER}};
