// Package contracts makes what producers and readers outside Go need from the types and the topics: a JSON Schema per event and an
// AsyncAPI document. The types' comments become descriptions, so there is one place to write them.
//
// It runs when the files are made and when a test checks that they are up to date; no service uses it.
package contracts
