package intake

import (
	"net/http"

	"github.com/pointsman/pointsman/services/intake/access"
)

// document serves a text that was built in.
func document(media string, data func() []byte) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ access.Principal) error {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(data()) // the client has gone: nobody to tell
		return nil
	}
}

const indexPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>pointsman intake</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}code,pre{background:#f3f3f3;padding:.1em .3em}pre{padding:1em;overflow:auto}</style></head>
<body><h1>pointsman intake</h1>
<p>Send a query; it is routed to the engine that will meet its SLA, and you are told why. <code>URL</code> is the address of this page; where callers are
known by tokens, add <code>-H "Authorization: Bearer …"</code>.</p>
<pre>curl -s "$URL/v1/queries?wait=30s" -H 'Content-Type: application/json' \
  -d '{"sql":"SELECT 1","tenant":"tenant_a","slaSeconds":10}'</pre>
<ul>
<li><code>POST /v1/queries</code> takes a query in (202), or waits for its result with <code>?wait=30s</code></li>
<li><code>GET /v1/tasks</code> lists the tasks that changed last</li>
<li><code>GET /v1/tasks/{id}</code> where a task is and why; <code>/events</code> follows it, <code>/result</code> has its rows</li>
<li><code>DELETE /v1/tasks/{id}</code> cancels it</li>
<li><code>POST /v1/explain</code> decides without running</li>
<li>All of it is described in <a href="/v1/openapi.yaml">openapi.yaml</a> and <a href="/v1/openapi.json">openapi.json</a></li>
</ul></body></html>
`

// index is the page for a person who opens the address in a browser.
func index(w http.ResponseWriter, _ *http.Request, _ access.Principal) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write([]byte(indexPage)) // the client has gone: nobody to tell
	return nil
}
