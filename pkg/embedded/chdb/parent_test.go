package chdb_test

// parentMark makes the test binary play a parent that is killed under its engine.
const parentMark = "POINTSMAN_TEST_PARENT"

func runParent() {}
