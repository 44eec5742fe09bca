package history

// Pinned lets a test be a writer that does not pin what ours does.
var Pinned = pinned

// Statement is the text of an embedded statement.
var Statement = statement
