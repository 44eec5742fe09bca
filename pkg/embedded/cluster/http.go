package cluster

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

const apiPrefix = "/apis/" + APIVersion

// Handler serves the resource at the paths of kube-apiserver.
func (s *Server) Handler() http.Handler {
	object := apiPrefix + "/namespaces/{namespace}/" + plural + "/{name}"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+object, s.named(s.getObject))
	mux.HandleFunc("GET "+object+"/status", s.named(s.getObject))
	mux.HandleFunc("PATCH "+object, s.named(s.patchObject(false)))
	mux.HandleFunc("PATCH "+object+"/status", s.named(s.patchObject(true)))
	mux.HandleFunc(object, s.named(methodNotAllowed))
	mux.HandleFunc(object+"/status", s.named(methodNotAllowed))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &apiError{code: 404, reason: "NotFound", message: "the server could not find the requested resource"})
	})
	return mux
}

// named lets a request through when its caller may do it and it means the object that there is.
func (s *Server) named(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.authorize(r); err != nil {
			writeError(w, err)
			return
		}
		if r.PathValue("namespace") != s.opts.Namespace || r.PathValue("name") != s.opts.Name {
			writeError(w, &apiError{code: 404, reason: "NotFound", message: plural + ` "` + r.PathValue("name") + `" not found`})
			return
		}
		next(w, r)
	}
}

func (s *Server) authorize(r *http.Request) error {
	if s.opts.Token == "" {
		return nil
	}
	sent := []byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if subtle.ConstantTimeCompare(sent, []byte(s.opts.Token)) == 1 {
		return nil
	}
	if s.opts.ReadOnlyToken == "" || subtle.ConstantTimeCompare(sent, []byte(s.opts.ReadOnlyToken)) != 1 {
		return &apiError{code: 401, reason: "Unauthorized", message: "Unauthorized"}
	}
	if r.Method != http.MethodGet {
		return &apiError{code: 403, reason: "Forbidden", message: plural + " is forbidden: the user cannot patch it"}
	}
	return nil
}

func (s *Server) getObject(w http.ResponseWriter, _ *http.Request) {
	data, err := s.store.get()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, data)
}

func (s *Server) patchObject(statusOnly bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json-patch+json" {
			writeError(w, &apiError{code: 415, reason: "UnsupportedMediaType", message: "the body of the request was in an unknown " +
				"format - accepted media types include: application/json-patch+json"})
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPatchBytes))
		if err != nil {
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				err = &apiError{code: 413, reason: "RequestEntityTooLarge", message: "the request is too large"}
			}
			writeError(w, err)
			return
		}
		data, err := s.store.patch(body, statusOnly)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, data)
	}
}

func methodNotAllowed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", "GET, PATCH")
	writeError(w, &apiError{code: 405, reason: "MethodNotAllowed", message: "the server does not allow this method on the requested resource"})
}

func writeError(w http.ResponseWriter, err error) {
	answer := &apiError{code: 500, reason: "InternalError", message: err.Error()}
	errors.As(err, &answer)
	data, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": answer.message, "reason": answer.reason, "code": answer.code,
	})
	if err != nil {
		http.Error(w, answer.message, answer.code)
		return
	}
	writeJSON(w, answer.code, data)
}

func writeJSON(w http.ResponseWriter, code int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}
