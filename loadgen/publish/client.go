package publish

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// deliveryTimeout is how long a record may wait for its acknowledgement before it counts as failed.
const deliveryTimeout = 30 * time.Second

// NewClient makes the producer that Run wants: idempotent, acknowledged by all replicas, nothing held back to fill a
// batch. Unless remote is set it reaches loopback addresses only, whatever the brokers advertise: a load generator
// pointed at the wrong cluster by mistake is an outage.
func NewClient(brokers []string, topic string, remote bool) (*kgo.Client, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if !remote {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return refuseRemote(address) }
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ClientID("pointsman-loadgen"),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(100_000), // Produce blocks beyond; open loop means that it should not
		kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.Dialer(dialer.DialContext),
	)
	if err != nil {
		return nil, fmt.Errorf("making producer: %w", err)
	}
	return client, nil
}

func refuseRemote(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading address %q: %w", address, err)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("broker %s is not on this machine: say --remote if you mean it", address)
	}
	return nil
}

// ping fails early, and with the reason, where the first record would only time out.
func ping(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("reaching the broker: %w", err)
	}
	return nil
}
