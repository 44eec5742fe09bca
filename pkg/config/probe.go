package config

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// probeTimeout is above what a service takes to answer /readyz when one of its checks hangs.
const probeTimeout = 4 * time.Second

// probe asks a running service whether it is ready. The error has what it answered, reasons included.
func probe(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(answer)))
}
