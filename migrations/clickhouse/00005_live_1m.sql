-- The last days by the minute, for dashboards that refresh every few seconds. It counts a row again when a replay cuts its
-- batches elsewhere, so nothing but a dashboard reads it: routing and reports read the rollups by the hour.

-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS live_1m {{ON_CLUSTER}}
(
    minute             DateTime('UTC'),
    cluster            LowCardinality(String),
    n                  SimpleAggregateFunction(sum, UInt64),
    hits               SimpleAggregateFunction(sum, UInt64),
    fails              SimpleAggregateFunction(sum, UInt64),
    rerouted           SimpleAggregateFunction(sum, UInt64),
    q_total            AggregateFunction(quantilesTDigestIf(0.5, 0.95), UInt64, UInt8),
    q_queue            AggregateFunction(quantilesTDigestIf(0.5, 0.95), UInt64, UInt8)
)
ENGINE = {{ENGINE_PREFIX}}AggregatingMergeTree
PARTITION BY toYYYYMMDD(minute)
ORDER BY (cluster, minute)
TTL minute + INTERVAL 7 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS live_1m_mv {{ON_CLUSTER}} TO live_1m AS
SELECT
    toStartOfMinute(finished_at) AS minute,
    cluster,
    count() AS n,
    countIf(sla_hit) AS hits,
    countIf(status != 'succeeded') AS fails,
    countIf(rerouted) AS rerouted,
    quantilesTDigestIfState(0.5, 0.95)(total_ms, NOT ts_clamped) AS q_total,
    quantilesTDigestIfState(0.5, 0.95)(assumeNotNull(queue_ms), queue_ms IS NOT NULL) AS q_queue
FROM outcomes
GROUP BY minute, cluster;

-- +goose Down
DROP VIEW IF EXISTS live_1m_mv {{ON_CLUSTER}};
DROP TABLE IF EXISTS live_1m {{ON_CLUSTER}};
