package broker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sessions finds members of consumer groups that have died without the broker's noticing.
//
// kfake watches a member from the moment when an answer has reached it. One that dies while it waits for the answer to its join, or
// before it asks for its share, is never watched: once the others have theirs, the dead one keeps its own for ever and nobody reads it.
// So the members' signs of life are noted here as well, and a member that gives none for longer than its session lasts leaves.
type sessions struct {
	cluster *kfake.Cluster

	mu     sync.Mutex
	groups map[string]map[string]*life // by group and member id
	epochs map[string]epoch
}

// life is when a member was last heard of, and how long it may be silent.
type life struct {
	at      time.Time
	session time.Duration
}

// epoch is since when a group has not been gathering its members: whoever waits for the others may be silent.
type epoch struct {
	number int32
	since  time.Time
}

// WatchSessions looks after the groups of a cluster that somebody else has made, until it is told to stop. That has to be before the
// cluster is closed.
func WatchSessions(cluster *kfake.Cluster, log *slog.Logger) (stop func(), err error) {
	s := watchSessions(cluster)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return nil, fmt.Errorf("watching the sessions of groups: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.run(ctx, client, log) })
	return func() {
		cancel()
		wg.Wait()
		client.Close()
	}, nil
}

func watchSessions(cluster *kfake.Cluster) *sessions {
	s := &sessions{cluster: cluster, groups: map[string]map[string]*life{}, epochs: map[string]epoch{}}
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat} {
		cluster.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			switch r := req.(type) {
			case *kmsg.JoinGroupRequest:
				s.heard(r.Group, r.MemberID, time.Duration(r.SessionTimeoutMillis)*time.Millisecond)
			case *kmsg.SyncGroupRequest:
				s.heard(r.Group, r.MemberID, 0)
			case *kmsg.HeartbeatRequest:
				s.heard(r.Group, r.MemberID, 0)
			}
			return nil, nil, false
		})
	}
	return s
}

// heard notes a sign of life. Members that have not joined under their own id are not known yet.
func (s *sessions) heard(group, member string, session time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.groups[group][member]
	switch {
	case member == "" || (l == nil && session == 0):
		return
	case l == nil:
		if s.groups[group] == nil {
			s.groups[group] = map[string]*life{}
		}
		l = &life{}
		s.groups[group][member] = l
	}
	l.at = time.Now()
	if session > 0 {
		l.session = session
	}
}

// watchEvery is how often silent members are looked for.
const watchEvery = time.Second

func (s *sessions) run(ctx context.Context, client *kgo.Client, log *slog.Logger) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			for group, members := range s.silent(now) {
				err := leave(ctx, client, group, members) // what fails is tried again at the next look
				if log != nil && ctx.Err() == nil {
					log.WarnContext(ctx, "embedded broker: members of a group have been silent for too long and leave it", "group", group, "members", len(members), "error", err)
				}
			}
		}
	}
}

// silent are the members to be removed, by group. It forgets those that the groups have lost by themselves.
func (s *sessions) silent(now time.Time) map[string][]kfake.GroupMember {
	s.mu.Lock()
	groups := make(map[string]map[string]life, len(s.groups))
	for group, members := range s.groups {
		groups[group] = make(map[string]life, len(members))
		for id, l := range members {
			groups[group][id] = *l
		}
	}
	s.mu.Unlock()
	out := map[string][]kfake.GroupMember{}
	for group, members := range groups {
		info := s.cluster.GroupInfo(group) // not under the lock: the cluster's own goroutine takes it
		settled := s.settled(group, info, now)
		gone := maps.Clone(members)
		if info != nil {
			for _, m := range info.Members {
				delete(gone, m.MemberID)
				l, known := members[m.MemberID]
				if known && now.Sub(l.at) > l.session+watchEvery && settled > l.session+watchEvery {
					out[group] = append(out[group], m)
				}
			}
		}
		s.forget(group, gone, now)
	}
	return out
}

// settled is for how long a group has had its members together.
func (s *sessions) settled(group string, info *kfake.GroupInfo, now time.Time) time.Duration {
	if info == nil || info.State == "PreparingRebalance" {
		delete(s.epochs, group)
		return 0
	}
	e, ok := s.epochs[group]
	if !ok || e.number != info.Epoch {
		e = epoch{info.Epoch, now}
		s.epochs[group] = e
	}
	return now.Sub(e.since)
}

// forget drops members that their group does not have any more. A member that has only just spoken may be about to join.
func (s *sessions) forget(group string, gone map[string]life, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range gone {
		if now.Sub(l.at) > l.session+watchEvery {
			delete(s.groups[group], id)
		}
	}
	if len(s.groups[group]) == 0 {
		delete(s.groups, group)
	}
}

func leave(ctx context.Context, client *kgo.Client, group string, members []kfake.GroupMember) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, member := range members {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID = member.MemberID, member.InstanceID
		m.Reason = new("silent for longer than its session lasts")
		req.Members = append(req.Members, m)
	}
	_, err := req.RequestWith(ctx, client)
	return err
}
