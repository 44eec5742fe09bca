package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// family is the resident memory, in MB, of a process and of its children, by the name that each calls itself.
func family(pid int) (map[string]float64, error) {
	out := map[string]float64{}
	mb, _, err := residentOf(pid)
	if err != nil {
		return nil, err
	}
	out["pointsman"] = mb
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	for _, file := range tasks {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for field := range strings.FieldsSeq(string(data)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if mb, name, err := residentOf(child); err == nil {
				out[name] = mb
			}
		}
	}
	return out, nil
}

// residentOf reads one process. Its name is its last argument: an engine's child is called engine:NAME.
func residentOf(pid int) (mb float64, name string, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, "", fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				return 0, "", fmt.Errorf("reading the memory of process %d: %w", pid, err)
			}
			mb = float64(kb) / 1024
		}
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return 0, "", err
	}
	parts := strings.Split(strings.Trim(string(args), "\x00"), "\x00")
	return mb, parts[len(parts)-1], nil
}
