// Package cluster is a Kubernetes stand-in for one machine: one custom resource of the Doris operator, served over HTTP
// with the paths and the JSON Patch semantics of kube-apiserver, and a tiny operator that starts and stops the pools it
// describes.
//
// It keeps the habits of the real thing, the misleading ones too, so that a scaler that works here works there: a group
// at zero is phase Ready and turns the cluster's health red, a scale-up stays Ready while nothing runs yet,
// status.replicas is a copy of the spec, a failed test operation is 422 and not 409, a patch that changes nothing leaves
// generation and resourceVersion alone. Where it is stricter than the real server it refuses what nobody should send: a
// merge patch, which would wipe the other groups there, is 415 here.
//
// How a pool is run is the caller's: see PoolRunner. What size a pool should have is the scaler's.
package cluster
