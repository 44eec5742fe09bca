package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// The bounds of kube-apiserver.
const (
	maxPatchBytes      = 3 << 20
	maxPatchOperations = 10_000
)

// apiError is an answer that is a Kubernetes Status.
type apiError struct {
	code    int
	reason  string
	message string
}

func (e *apiError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &apiError{code: 422, reason: "Invalid", message: fmt.Sprintf(format, args...)}
}

// applyPatch returns a patched copy of the object. Whatever does not apply is 422 with the generic text of the real
// server: neither the code nor the text says which operation it was.
func applyPatch(object map[string]any, body []byte) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, &apiError{code: 400, reason: "BadRequest", message: "error decoding patch: " + err.Error()}
	}
	if len(patch) > maxPatchOperations {
		return nil, &apiError{code: 413, reason: "RequestEntityTooLarge", message: fmt.Sprintf("The allowed maximum operations "+
			"in a JSON patch is %d, got %d", maxPatchOperations, len(patch))}
	}
	doc, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	for _, op := range patch {
		if doc, err = applyOperation(doc, op); err != nil {
			return nil, &apiError{code: 422, reason: "Invalid", message: "the server rejected our request due to an error in our request"}
		}
	}
	next, err := decodeObject(doc)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return next, nil
}

// applyOperation applies one operation. The library of kube-apiserver is laxer than RFC 6902: a replace of a key that an
// object does not have sets it. The one used here refuses that, so such a replace is tried again as an add.
func applyOperation(doc []byte, op jsonpatch.Operation) ([]byte, error) {
	out, err := jsonpatch.Patch{op}.Apply(doc)
	if err == nil || op.Kind() != "replace" {
		return out, err
	}
	path, pathErr := op.Path()
	if pathErr != nil || isIndex(path) {
		return nil, err // an index that is not there stays an error
	}
	add := jsonpatch.Operation{}
	maps.Copy(add, op)
	kind := json.RawMessage(`"add"`)
	add["op"] = &kind
	return jsonpatch.Patch{add}.Apply(doc)
}

// isIndex says whether the last part of a path is an array index, or the end of an array.
func isIndex(path string) bool {
	last := path
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			last = path[i+1:]
			break
		}
	}
	_, err := strconv.Atoi(last)
	return err == nil || last == "-"
}

// Keys that the schema knows. The real server drops unknown ones without a word.
var (
	objectKeys = keys("apiVersion", "kind", "metadata", "spec", "status")
	specKeys   = keys("metaService", "feSpec", "computeGroups", "authSecret", "adminUser", "deployMode", "enableDecommission",
		"kerberosInfo", "initSystem")
	groupKeys = keys("uniqueId", "replicas", "image", "requests", "limits", "labels", "annotations", "envVars", "configMaps",
		"secrets", "serviceAccount", "affinity", "tolerations", "nodeSelector", "persistentVolume", "persistentVolumes", "service",
		"startTimeout", "liveTimeout", "enableWorkloadGroup", "skipDefaultSystemInit")
)

func keys(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}

func prune(object map[string]any) {
	keepOnly(object, objectKeys)
	if spec, ok := object["spec"].(map[string]any); ok {
		keepOnly(spec, specKeys)
	}
	for _, g := range computeGroups(object) {
		keepOnly(g, groupKeys)
	}
}

func keepOnly(m map[string]any, known map[string]bool) {
	for k := range m {
		if !known[k] {
			delete(m, k)
		}
	}
}

// validate checks what the schema of the resource definition checks: types, and uniqueId. It has no minimum for replicas.
func validate(object map[string]any, maxReplicas int32) error {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return invalid("spec: must be an object")
	}
	list, ok := spec["computeGroups"].([]any)
	if !ok {
		return invalid("spec.computeGroups: must be an array")
	}
	for i, item := range list {
		group, ok := item.(map[string]any)
		if !ok {
			return invalid("spec.computeGroups[%d]: must be an object", i)
		}
		if _, ok := group["uniqueId"].(string); !ok {
			return invalid("spec.computeGroups[%d].uniqueId: Required value", i)
		}
		raw, has := group["replicas"]
		if !has {
			if maxReplicas > 0 {
				return invalid("spec.computeGroups[%d].replicas: denied by the admission policy: must be present", i)
			}
			continue
		}
		number, ok := raw.(json.Number)
		if !ok {
			return invalid("spec.computeGroups[%d].replicas: Invalid value: must be of type integer", i)
		}
		n, err := strconv.ParseInt(number.String(), 10, 32)
		if err != nil {
			return invalid("spec.computeGroups[%d].replicas: Invalid value: %s: must be of type integer, int32", i, number)
		}
		if maxReplicas > 0 && (n < 0 || n > int64(maxReplicas)) {
			return invalid("spec.computeGroups[%d].replicas: denied by the admission policy: must be 0 to %d", i, maxReplicas)
		}
	}
	return nil
}
