// Package profiler writes every event to the history, keeps its rollups, watches the clusters and publishes what it sees, and
// serves the console.
//
// It decides nothing: pkg/history stores and reads, services/profiler/load folds attempts into loads, pkg/engine asks engines. An
// offset is committed when the history has acknowledged the rows and the hours they touch are marked; until then a crash reads
// them again, and the first record of an id counts.
package profiler
