-- Runs that were stopped for their time (deadline, SLA, estimate): each would have taken at least as long as it had run by then,
-- which is evidence that the successes alone do not give. Hours that were rolled up before count none.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE attempt_1h {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS stop_n UInt64 AFTER read_sum, ADD COLUMN IF NOT EXISTS stop_sum Float64 AFTER stop_n;
ALTER TABLE attempt_bucket_1h {{ON_CLUSTER}} ADD COLUMN IF NOT EXISTS stop_n UInt64 AFTER read_sum, ADD COLUMN IF NOT EXISTS stop_sum Float64 AFTER stop_n;

-- +goose Down
ALTER TABLE attempt_bucket_1h {{ON_CLUSTER}} DROP COLUMN IF EXISTS stop_n, DROP COLUMN IF EXISTS stop_sum;
ALTER TABLE attempt_1h {{ON_CLUSTER}} DROP COLUMN IF EXISTS stop_n, DROP COLUMN IF EXISTS stop_sum;
