package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// maxTries bounds how often a write is tried against a moving object.
const maxTries = 3

// Result is what became of a wish to scale.
type Result struct {
	Cluster Cluster
	// Wrote is true when this call's patch was taken. A patch whose answer was lost counts as not written even if it was.
	Wrote bool
	// From and To are the replicas before and after; equal when nothing was written.
	From, To int32
}

// Scale reads the object, asks decide what the group's replicas should be, and writes that. After a refusal it reads the
// object again and asks again, so that decide always judges what is really there; it returns false for "leave it".
func (c *Client) Scale(ctx context.Context, uniqueID string, decide func(Group) (to int32, write bool)) (Result, error) {
	var refused error
	for try := range maxTries {
		if try > 0 {
			if err := sleep(ctx, c.retryWait(try)); err != nil {
				return Result{}, errors.Join(refused, err)
			}
		}
		cluster, err := c.Get(ctx)
		if err != nil {
			return Result{}, errors.Join(refused, err)
		}
		group, err := cluster.Group(uniqueID)
		if err != nil {
			return Result{Cluster: cluster}, err
		}
		from := group.Replicas()
		to, write := decide(group)
		if !write || (to == from && group.Declared != nil) {
			return Result{Cluster: cluster, From: from, To: from}, nil // also when a refused patch got there all the same
		}
		if to < 0 {
			return Result{Cluster: cluster, From: from, To: from}, fmt.Errorf("scaling %s: %d replicas: the server would take it, nobody else", uniqueID, to)
		}
		if refused != nil && !worthAnotherTry(refused) {
			return Result{Cluster: cluster, From: from, To: from}, fmt.Errorf("scaling %s to %d: %w", uniqueID, to, refused)
		}
		body, err := replicasPatch(cluster, group, to)
		if err != nil {
			return Result{}, err
		}
		data, err := c.do(ctx, http.MethodPatch, "application/json-patch+json", body)
		if err == nil {
			after, err := parse(data)
			return Result{Cluster: after, Wrote: true, From: from, To: to}, err
		}
		var status *StatusError
		if !errors.As(err, &status) || status.Code >= http.StatusInternalServerError {
			// It may have been written or not. The next read tells, and that is the caller's next round.
			return Result{Cluster: cluster, From: from, To: from}, fmt.Errorf("scaling %s to %d: %w", uniqueID, to, err)
		}
		refused = err
	}
	return Result{}, fmt.Errorf("scaling %s: %w: %w", uniqueID, ErrContended, refused)
}

// worthAnotherTry says whether a refusal can have come from a change between read and write.
func worthAnotherTry(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.Code {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		return true
	default:
		return false
	}
}

func jitter(try int) time.Duration {
	return time.Duration(try) * (10*time.Millisecond + rand.N(30*time.Millisecond))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
