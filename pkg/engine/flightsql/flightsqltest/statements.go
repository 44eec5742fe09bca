package flightsqltest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// GetFlightInfoStatement takes a query. It starts when its rows are asked for.
func (s *Server) GetFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	st, err := s.add(ctx, q.GetQuery())
	if err != nil {
		return nil, err
	}
	ticket, err := flightsql.CreateStatementQueryTicket([]byte(st.handle))
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		FlightDescriptor: d, AppMetadata: []byte(st.handle), TotalRecords: -1, TotalBytes: -1,
		Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}, ExpirationTime: timestamppb.New(time.Now().Add(unfetchedFor))}},
	}, nil
}

// DoGetStatement runs a query and streams its rows.
func (s *Server) DoGetStatement(ctx context.Context, t flightsql.StatementQueryTicket) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	run, st, err := s.begin(ctx, string(t.GetStatementHandle()))
	if err != nil {
		return nil, nil, err
	}
	body, err := s.engine.run(run, st.query)
	if err != nil {
		s.engine.abandon(st.query.id)
		said := asStatus(run, err)
		s.end(st)
		return nil, nil, said
	}
	reader, err := ipc.NewReader(body)
	if err != nil && body.count == 0 { // a statement without a result
		_ = body.Close()
		s.end(st)
		none := make(chan flight.StreamChunk)
		close(none)
		return arrow.NewSchema(nil, nil), none, nil
	}
	if err != nil {
		_ = body.Close()
		said := asStatus(run, err)
		s.end(st)
		return nil, nil, said
	}
	chunks := make(chan flight.StreamChunk)
	s.group.Go(func() {
		defer close(chunks)
		err := pump(run, reader, body, chunks)
		reader.Release()
		_ = body.Close()
		if err != nil {
			s.engine.abandon(st.query.id)
		}
		s.end(st) // nothing of it runs any more, whenever its reader hears of it
		if err == nil {
			return
		}
		select { // without the error what was sent would look whole
		case chunks <- flight.StreamChunk{Err: err}:
		case <-ctx.Done():
		}
	})
	return reader.Schema(), chunks, nil
}

// batchRows keeps what is sent at once well below gRPC's usual limit of 4 MB.
const batchRows = 4096

// pump hands batches over as they are asked for.
func pump(ctx context.Context, reader *ipc.Reader, body io.Reader, chunks chan<- flight.StreamChunk) error {
	for reader.Next() {
		whole := reader.RecordBatch()
		for from := int64(0); from < whole.NumRows(); from += batchRows {
			batch := whole.NewSlice(from, min(from+batchRows, whole.NumRows()))
			select {
			case chunks <- flight.StreamChunk{Data: batch}:
			case <-ctx.Done():
				batch.Release()
				return asStatus(ctx, ctx.Err())
			}
		}
	}
	err := reader.Err()
	if err == nil { // the engine ends the stream of Arrow properly, and then says that it has failed
		_, err = io.Copy(io.Discard, body)
	}
	if err != nil {
		return asStatus(ctx, err)
	}
	return nil
}

// DoPutCommandStatementUpdate runs a statement without a result.
func (s *Server) DoPutCommandStatementUpdate(ctx context.Context, u flightsql.StatementUpdate) (int64, error) {
	st, err := s.add(ctx, u.GetQuery())
	if err != nil {
		return 0, err
	}
	run, st, err := s.begin(ctx, st.handle)
	if err != nil {
		return 0, err
	}
	defer s.end(st)
	body, err := s.engine.run(run, st.query)
	if err != nil {
		s.engine.abandon(st.query.id)
		return 0, asStatus(run, err)
	}
	defer func() { _ = body.Close() }()
	return body.written, nil
}

// CancelFlightInfo stops a query at the engine.
func (s *Server) CancelFlightInfo(ctx context.Context, r *flight.CancelFlightInfoRequest) (flight.CancelFlightInfoResult, error) {
	s.mu.Lock()
	st := s.statements[string(r.GetInfo().GetAppMetadata())]
	s.mu.Unlock()
	if st == nil {
		return flight.CancelFlightInfoResult{Status: flight.CancelStatusNotCancellable}, nil
	}
	if err := s.cancel(ctx, st); err != nil {
		return flight.CancelFlightInfoResult{}, err
	}
	return flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
}

// statuses are those of the engine's codes that tests provoke.
var statuses = map[int]codes.Code{
	46: codes.NotFound, 47: codes.NotFound, 60: codes.NotFound, 81: codes.NotFound, 57: codes.AlreadyExists,
	36: codes.InvalidArgument, 43: codes.InvalidArgument, 53: codes.InvalidArgument, 62: codes.InvalidArgument, 115: codes.InvalidArgument,
	48: codes.Unimplemented, 153: codes.OutOfRange, 395: codes.FailedPrecondition, 164: codes.FailedPrecondition,
	241: codes.ResourceExhausted, 202: codes.ResourceExhausted, 158: codes.ResourceExhausted, 396: codes.ResourceExhausted, 159: codes.DeadlineExceeded, 394: codes.Canceled, 497: codes.PermissionDenied,
}

func asStatus(ctx context.Context, err error) error {
	if said, ok := errors.AsType[*exception](err); ok {
		code, known := statuses[said.code]
		if !known {
			code = codes.Internal
		}
		return status.Error(code, said.text)
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if ctx.Err() != nil {
		return status.Error(codes.Canceled, "the statement was cancelled")
	}
	return status.Error(codes.Internal, err.Error())
}
