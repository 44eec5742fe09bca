// Package intake is the HTTP front door: it says who calls, checks what is asked, writes it to the requests topic, and
// answers for every Task from what the topics say.
//
// A request is answered when the broker has acknowledged it, not before. Tenant and user come from the credential. What
// a Task is worth and where it runs is the router's, also for explain, which is passed on to it. Results are the
// executor's files; they are only served here.
package intake
