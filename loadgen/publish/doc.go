// Package publish sends arrivals to the requests topic at their own times: open loop, so that a slow system under test
// does not slow its load down, and says how well it kept those times.
//
// A record's value is the bare JSON of the Task, without headers: what kcat -P could send. Its key is the session id,
// else the task id. What is sent is decided by the package workload; what becomes of it is for others to measure.
package publish
