// Package scaler keeps pools at zero until somebody needs them.
//
// It folds decisions, attempts and outcomes into the Tasks that wait for a pool or run on it, plans the pool's size with
// pkg/capacity, writes the one field of the custom resource with pkg/kube, climbs the readiness ladder of pkg/probe, and
// publishes what came of it as signals. Everything it acts on is a level that is read again: the custom resource and the
// topics. So a restart changes nothing, and a hundred Tasks that want a pool are one patch.
//
// All instances fold; the one that the consumer group has given partition 0 of decisions acts. Which Task goes where is
// the router's, and whether it waits for a pool the executor's.
package scaler
