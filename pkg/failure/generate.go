package failure

//go:generate go test . -run TestRemediesAreInTheDocs -update
