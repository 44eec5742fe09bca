package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/test/testkit"
)

// Load publishes Tasks at a steady rate, most of them small, some that run for a third of a second or for two, some for batch, some that
// the interactive pool's memory does not hold. Every other one that HTTP is told of goes through it, with a key of its own, and is sent
// again until an answer comes.
type Load struct {
	w    *testkit.World
	run  string
	http func() string // intake's address; nil sends everything to the topic

	mu  sync.Mutex
	n   int
	ids []string
	wg  sync.WaitGroup
}

// NewLoad makes a load whose ids begin with run.
func NewLoad(w *testkit.World, run string, http func() string) *Load {
	return &Load{w: w, run: run, http: http}
}

// IDs are the ids of what was taken in. Call it when Send has returned.
func (l *Load) IDs() []string {
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids
}

// Send publishes count Tasks at rate a second. It returns when the last one is sent, not when it has ended.
func (l *Load) Send(t testing.TB, count int, rate float64) {
	t.Helper()
	began := time.Now()
	for i := range count {
		time.Sleep(time.Until(began.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		l.n++
		task := l.task(l.n)
		if l.http != nil && l.n%4 == 0 {
			l.wg.Go(func() { l.post(t, task) })
			continue
		}
		data, err := json.Marshal(task)
		require.NoError(t, err)
		// Asynchronously: a broker that is away must not slow the arrivals down.
		l.wg.Add(1)
		l.w.ProduceAsync(&kgo.Record{Key: []byte(task["id"].(string)), Value: data}, func(err error) {
			defer l.wg.Done()
			if err != nil {
				t.Errorf("publishing %s: %v", task["id"], err)
				return
			}
			l.took(task["id"].(string))
		})
	}
}

func (l *Load) took(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

func (l *Load) task(n int) map[string]any {
	task := map[string]any{
		"id": fmt.Sprintf("%s-%04d", l.run, n), "tenant": fmt.Sprintf("tenant_%d", n%3), "slaSeconds": 30, "timeoutSeconds": 240,
		"sql": fmt.Sprintf("SELECT n_name FROM tpch.nation WHERE n_nationkey < %d", n%25),
	}
	switch {
	case n%29 == 7:
		task["sql"] = testkit.Wide
	case n%17 == 5:
		task["tags"] = []string{"etl"}
	case n%10 == 3:
		task["sql"] = fmt.Sprintf("SELECT sum(sleepEachRow(0.5)), %d FROM numbers(4) SETTINGS max_block_size = 1", n)
	case n%6 == 1:
		task["sql"] = fmt.Sprintf("SELECT sleep(0.3), %d", n)
	}
	return task
}

// post hands a Task in by HTTP as a careful client does: with a key, again and again until there is an answer.
func (l *Load) post(t testing.TB, task map[string]any) {
	key := task["id"].(string)
	delete(task, "id")
	body, err := json.Marshal(task)
	if err != nil {
		t.Errorf("encoding %s: %v", key, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		answer, err := testkit.NewAPI(t, l.http()).Do("POST", "/v1/queries", string(body), "Idempotency-Key", key)
		switch {
		case err == nil && (answer.Status == http.StatusAccepted || answer.Status == http.StatusOK): // 200: it has ended since it was sent first
			var a intake.Accepted
			if err := json.Unmarshal(answer.Body, &a); err != nil {
				t.Errorf("reading the answer to %s: %v", key, err)
				return
			}
			l.took(a.TaskID)
			return
		case err == nil && answer.Status < 500:
			t.Errorf("handing %s in: %d %s", key, answer.Status, answer.Body)
			return
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("nobody took %s: %d %s %v", key, answer.Status, answer.Body, err)
			return
		}
	}
}
