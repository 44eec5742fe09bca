package command

import (
	"context"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
)

type dlqCmd struct {
	kafkaFlags
	List    dlqListCmd    `cmd:"" help:"List dead letters: what could not be used, where it lay, and why."`
	Requeue dlqRequeueCmd `cmd:"" help:"Send dead letters back to where they lay, each once. Says what it would do unless --yes is given."`
}

// letterFlags say which dead letters are meant.
type letterFlags struct {
	Topic string        `help:"Only those that lay in this topic."`
	Stage string        `help:"Only those that this service gave up."`
	Class string        `help:"Only those of this class, e.g. not_json, bad_payload."`
	Since time.Duration `help:"Only those of this long ago and newer."`
}

func (f letterFlags) filter() topicadmin.LetterFilter {
	out := topicadmin.LetterFilter{Topic: f.Topic, Stage: f.Stage, Class: f.Class}
	if f.Since > 0 {
		out.Since = time.Now().Add(-f.Since)
	}
	return out
}

type dlqListCmd struct{ letterFlags }

// Run lists dead letters.
func (l dlqListCmd) Run(ctx context.Context, s *streams, c *cli) error {
	letters, err := topicadmin.Letters(ctx, c.Dlq.config(), stream.Deps{}, l.filter())
	if err != nil {
		return err
	}
	for _, letter := range letters {
		_, _ = fmt.Fprintln(s.out, letter)
	}
	s.say("%d dead letters", len(letters))
	return nil
}

type dlqRequeueCmd struct {
	letterFlags
	Yes         bool `help:"Do it."`
	MaxAttempts int  `help:"A record that came here so often stays." default:"3"`
}

// Run sends dead letters back.
func (r dlqRequeueCmd) Run(ctx context.Context, s *streams, c *cli) error {
	_, err := topicadmin.Requeue(ctx, c.Dlq.config(), stream.Deps{}, r.filter(),
		topicadmin.RequeueOptions{Apply: r.Yes, MaxAttempts: r.MaxAttempts}, s.out)
	return err
}
