// Package telemetry is what a service says about itself: logs, metrics, traces, and whether it is alive and ready.
//
// One Telemetry is built per process and passed down; For gives each service in the process its own logger, health and
// trace resource over the same outputs. Nothing is global, and nothing here knows what a service does: metrics are
// made by their owners on Registry, and trace context in record headers is the stream package's business.
package telemetry
