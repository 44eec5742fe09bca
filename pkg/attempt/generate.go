package attempt

//go:generate go test . -count=1 -run TestReportIsCommitted -update
