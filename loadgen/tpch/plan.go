package tpch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

// job makes one file, or the two files of orders and line items of the same year.
type job func(ctx context.Context, root string) (map[Table]File, error)

// rowsPerFile splits the tables that have no time of their own.
const rowsPerFile = 100_000

// plan lists the jobs of the chosen tables, the large ones first so that the last to end is a small one.
func (g *generator) plan(tables []Table) []job {
	has := func(t Table) bool { return slices.Contains(tables, t) }
	var jobs []job
	if has(Orders) || has(LineItem) {
		jobs = append(jobs, g.orderJobs(has(Orders), has(LineItem))...)
	}
	if has(Events) {
		jobs = append(jobs, g.eventJobs()...)
	}
	if has(PartSupp) {
		jobs = append(jobs, byKey(g, PartSupp, g.partSupp)...)
	}
	if has(Part) {
		jobs = append(jobs, byKey(g, Part, g.part)...)
	}
	if has(Customer) {
		jobs = append(jobs, byKey(g, Customer, g.customer)...)
	}
	if has(Supplier) {
		jobs = append(jobs, byKey(g, Supplier, g.supplier)...)
	}
	if has(Nation) {
		jobs = append(jobs, byKey(g, Nation, g.nation)...)
	}
	if has(Region) {
		jobs = append(jobs, byKey(g, Region, g.region)...)
	}
	return jobs
}

// byKey splits a table into files of equal ranges of its key.
func byKey[T any](g *generator, table Table, row func(int64) T) []job {
	rows := g.counts.of(table)
	files := (rows + rowsPerFile - 1) / rowsPerFile
	var jobs []job
	for n := range files {
		path := fmt.Sprintf("%s/%04d.parquet", table, n)
		jobs = append(jobs, rangeJob(g, table, path, n*rows/files, (n+1)*rows/files, row))
	}
	return jobs
}

func rangeJob[T any](g *generator, table Table, path string, from, to int64, row func(int64) T) job {
	return func(ctx context.Context, root string) (map[Table]File, error) {
		f, err := writeRows(ctx, root, path, from, to, g.made, row)
		if err != nil {
			return nil, err
		}
		return map[Table]File{table: f}, nil
	}
}

// eventJobs makes a file for each quarter.
func (g *generator) eventJobs() []job {
	var jobs []job
	for start := time.Date(1997, time.January, 1, 0, 0, 0, 0, time.UTC); start.Year() <= 1998; start = start.AddDate(0, 3, 0) {
		path := fmt.Sprintf("%s/%dq%d.parquet", Events, start.Year(), (int(start.Month())+2)/3)
		jobs = append(jobs, rangeJob(g, Events, path, g.firstEventAt(start), g.firstEventAt(start.AddDate(0, 3, 0)), g.event))
	}
	return jobs
}

func (g *generator) firstEventAt(t time.Time) int64 {
	return int64(sort.Search(int(g.counts.events), func(i int) bool { return g.eventTime(int64(i)) >= t.UnixMilli() }))
}

// orderJobs makes a file of orders and one of their line items for each year of the order date.
func (g *generator) orderJobs(orders, lines bool) []job {
	var jobs []job
	for year := 1992; year <= 1998; year++ {
		from, to := g.firstOrderOn(day(year, time.January, 1)), g.firstOrderOn(day(year+1, time.January, 1))
		jobs = append(jobs, func(ctx context.Context, root string) (map[Table]File, error) {
			return g.writeYear(ctx, root, year, from, to, orders, lines)
		})
	}
	return jobs
}

func (g *generator) writeYear(ctx context.Context, root string, year int, from, to int64, orders, lines bool) (made map[Table]File, err error) {
	made = map[Table]File{}
	finish := func(table Table, close func() (File, error)) {
		f, closeErr := close()
		made[table] = f
		err = errors.Join(err, closeErr)
	}
	var orderFile *tableFile[orderRow]
	var lineFile *tableFile[lineRow]
	if orders {
		if orderFile, err = create[orderRow](root, fmt.Sprintf("%s/%d.parquet", Orders, year), g.made); err != nil {
			return made, err
		}
		defer func() { finish(Orders, orderFile.close) }()
	}
	if lines {
		if lineFile, err = create[lineRow](root, fmt.Sprintf("%s/%d.parquet", LineItem, year), g.made); err != nil {
			return made, err
		}
		defer func() { finish(LineItem, lineFile.close) }()
	}
	var buffer []lineRow
	for i := from; i < to; i++ {
		if i%batchRows == 0 && ctx.Err() != nil {
			return made, context.Cause(ctx)
		}
		var o orderRow
		o, buffer = g.order(i, buffer[:0])
		if orders {
			if err := orderFile.add(o); err != nil {
				return made, err
			}
		}
		if lines {
			for _, l := range buffer {
				if err := lineFile.add(l); err != nil {
					return made, err
				}
			}
		}
	}
	return made, nil
}
