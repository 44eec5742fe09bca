package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/contrast"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/services/pointsman/record"
)

type replayCmd struct {
	Policy string `help:"Policy to try. Without it each decision is made again by its own policy, and must come out the same byte for byte." placeholder:"FILE" type:"existingfile"`
	recordFlags
	MaxChanged string `help:"Most decisions that may lead elsewhere: a share (2%) or a number (20). Exit code 4 if there are more. Without --policy it is 0." placeholder:"SHARE"`
	Samples    int    `help:"How many changed decisions to tell in words, one of each way to change." default:"3"`
	Output     string `help:"text, json, or markdown for a pull request." default:"text" enum:"text,json,markdown" short:"o"`
}

// Help says what the exit codes are.
func (replayCmd) Help() string {
	return `Makes recorded decisions again and says what differs: by place, rule, tenant and fingerprint.

Exit codes: 0 within --max-changed; 1 it could not be done, was interrupted, or there was nothing to compare; 2 wrong flags or a policy with faults;
4 more decisions lead elsewhere than --max-changed allows, or, without --policy, some do not come out the same.`
}

// Run replays.
func (c *replayCmd) Run(ctx context.Context, s *streams) error {
	limit, err := parseLimit(c.MaxChanged)
	if err != nil {
		return &lifecycle.UsageError{Err: fmt.Errorf("--max-changed: %w", err)}
	}
	opts := replay.Options{Tenants: c.Tenant, Fingerprints: c.Fingerprint, Samples: samples(c.Samples)}
	if c.Policy != "" {
		if opts.Policy, err = loadPolicy(c.Policy); err != nil {
			return err
		}
	}
	rep, err := c.replay(ctx, s, &opts)
	if err != nil {
		return err
	}
	rep.AfterName = baseName(c.Policy)
	if before := opts.Policies[rep.Before]; before != nil && opts.Policy != nil {
		changes, err := contrast.Structure(before, opts.Policy)
		if err != nil {
			return err
		}
		for _, change := range changes {
			rep.PolicyChanges = append(rep.PolicyChanges, change.String())
		}
	}
	if err := printReport(s, rep, c.Output); err != nil {
		return err
	}
	return judge(rep, limit)
}

// mostUnreadable bounds the records that are named when they can't be read.
const mostUnreadable = 5

// replay reads the record and decides again.
func (f recordFlags) replay(ctx context.Context, s *streams, opts *replay.Options) (rep replay.Report, err error) {
	defer func() { err = unfinished(ctx, err) }()
	if opts.From, opts.To, err = f.span(time.Now()); err != nil {
		return rep, err
	}
	rec, err := f.open(ctx)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, rec.Close(context.WithoutCancel(ctx))) }()
	if opts.Policies, err = rec.Policies(ctx); err != nil {
		return rep, err
	}
	if err := foldLatches(ctx, s, rec, opts); err != nil {
		return rep, err
	}
	run := replay.NewRun(*opts)
	update, finish := s.bar("deciding again")
	unreadable := 0
	reader := record.Reader{Input: run.Input, Progress: update, Unreadable: func(topic string, partition int32, offset int64, err error) {
		if unreadable++; unreadable <= mostUnreadable {
			s.say("%s[%d]@%d can't be read: %v", topic, partition, offset, err)
		}
	}}
	if opts.Against == nil {
		reader.Decision = run.Decision
	}
	err = rec.Read(ctx, opts.From, opts.To, reader)
	finish()
	if err != nil {
		return rep, err
	}
	rep = run.Report()
	rep.Gaps.Unreadable = unreadable
	return rep, nil
}

// foldLatches reads the inputs once beforehand when a policy has latches: their states hang on all signals before.
func foldLatches(ctx context.Context, s *streams, rec *record.Record, opts *replay.Options) error {
	for _, p := range []*policy.Policy{opts.Policy, opts.Against} {
		if l := replay.NewLatches(p); l != nil {
			opts.Latches = append(opts.Latches, l)
		}
	}
	if len(opts.Latches) == 0 {
		return nil
	}
	update, finish := s.bar("folding latches")
	defer finish()
	from := opts.From
	if !from.IsZero() {
		from = from.Add(-policy.LongestKeep) // no state hangs on what is older
	}
	return rec.Read(ctx, from, opts.To, record.Reader{Progress: update, Input: func(in route.Input) {
		for _, l := range opts.Latches {
			l.Note(in)
		}
	}})
}

// loadPolicy reads a policy whose faults are the caller's.
func loadPolicy(file string) (*policy.Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	p, err := policy.Load(file, text)
	if err != nil {
		return nil, &lifecycle.UsageError{Err: fmt.Errorf("the policy has faults:\n%w", err)}
	}
	return p, nil
}

func printReport(s *streams, rep replay.Report, output string) error {
	var text string
	switch output {
	case "json":
		data, err := json.MarshalIndent(rep, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		text = string(data) + "\n"
	case "markdown":
		text = rep.Markdown()
	default:
		text = rep.Text()
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// limit is how many decisions may change; a negative number is no limit.
type limit struct {
	share  float64
	number int
}

var noLimit = limit{-1, -1}

func parseLimit(s string) (limit, error) {
	if s == "" {
		return noLimit, nil
	}
	if text, ok := strings.CutSuffix(s, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return noLimit, fmt.Errorf("%q is no share between 0%% and 100%%", s)
		}
		return limit{p / 100, -1}, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return noLimit, fmt.Errorf("%q is no share like 2%% and no number like 20", s)
	}
	return limit{-1, n}, nil
}

// judge makes an error of a report that is over the limit, or that says nothing.
func judge(rep replay.Report, most limit) error {
	over := func(format string, args ...any) error {
		return &lifecycle.LimitError{Err: fmt.Errorf(format, args...)}
	}
	switch {
	case rep.Decisions == 0:
		return errors.New("there was no recorded decision to compare; see the notes, and --from, --to, --tenant, --fingerprint")
	case rep.Mode == replay.Checked && rep.Check.Different > 0 && most == noLimit:
		return over("%d of %d decisions do not come out the same", rep.Check.Different, rep.Decisions)
	case most.number >= 0 && rep.Changed > most.number:
		return over("%d decisions lead elsewhere, and --max-changed allows %d", rep.Changed, most.number)
	case most.share >= 0 && rep.Share > most.share:
		return over("%s of %d decisions lead elsewhere, and --max-changed allows %s", replay.Percent(rep.Share), rep.Decisions, replay.Percent(most.share))
	}
	return nil
}
