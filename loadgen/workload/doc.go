// Package workload makes the demo's arrivals: what is asked, by whom, and when. It is a pure function of its options, so
// that two machines, or two versions of a router, see the same load.
//
// It has four parts: the arrivals of the CAB trace with its TPC-H templates, the "Monday minute" (dashboards, a late
// transformation, wide scans, an agent), an agent that runs away, and a burst that makes the interactive queue long.
// All SQL is ClickHouse's and reads the tables of the package tpch in a database named tpch. Sending is left to the
// package publish.
package workload
