// Package testkit runs the whole system for tests: the embedded parts on free ports, the five services in this process or as
// processes that can be killed and stopped, a producer, and what is needed to judge the result from outside.
//
// It judges by what others see, never by what a service says of itself: submissions are counted by a proxy in front of each
// pool (Proxy), everything else is read off the topics (Log) and out of ClickHouse (World.Stored). Which scenario is played,
// and what must come of it, is test/e2e's.
package testkit
