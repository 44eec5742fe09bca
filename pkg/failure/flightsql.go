package failure

// flightsql maps the codes of gRPC, in which Arrow Flight SQL has its errors. They say less than an engine's own codes do: what a
// code has several meanings for is told by the server's message. A status that the client makes itself of a broken connection has no
// code in a report.
var flightsql = map[string]entry{
	"1": {name: "CANCELLED", class: KilledByOperator},
	"2": {name: "UNKNOWN", class: Internal, hint: "The server gave its error no code, so pointsman can't tell whose fault it is. Its message says more."},
	"3": {name: "INVALID_ARGUMENT", class: Semantic, hint: "The server refuses the statement, or a setting of the resource profile, as the message says."},
	"4": {name: "DEADLINE_EXCEEDED", class: Timeout},
	"5": {name: "NOT_FOUND", class: Semantic, hint: "Something that the statement names does not exist there. Check its tables, columns and functions, and the schema of the Task."},
	"6": {name: "ALREADY_EXISTS", class: Semantic},
	"7": {name: "PERMISSION_DENIED", class: Permission},
	"8": {name: "RESOURCE_EXHAUSTED", class: Resources, when: []meaning{
		{contains: "memory", class: MemoryLimit},
		{contains: "too many", class: QueueFull},
		{contains: "queue", class: QueueFull},
		{contains: "message larger than max", class: ResultTooLarge, hint: "A batch of the result is larger than the server may send at once. Select fewer columns, or have its operators raise the limit."},
	}},
	"9":  {name: "FAILED_PRECONDITION", class: Semantic},
	"10": {name: "ABORTED", class: Internal, hint: "The server gave it up for something that was done at the same time. Run the statement again when it is known not to have written anything."},
	"11": {name: "OUT_OF_RANGE", class: Semantic},
	"12": {name: "UNIMPLEMENTED", class: Semantic, hint: "The server has no such statement, or takes none of this kind over Arrow Flight SQL."},
	"13": {name: "INTERNAL", class: Internal},
	"14": {name: "UNAVAILABLE", network: true},
	"15": {name: "DATA_LOSS", class: Internal},
	"16": {name: "UNAUTHENTICATED", class: Permission, hint: "The server refuses the executor's own credential. The platform team has to correct it."},
}
