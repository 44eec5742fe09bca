package tpch

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ViewStatements returns the ClickHouse statements that make a database with a view for each table of the manifest,
// over the Parquet files in dir. They can be run again; run them one by one, in order.
//
// The columns are spelled out: it spares each query the inference of the schema, and it gives Date and Decimal(15, 2)
// rather than the wider types that inference picks.
func ViewStatements(database, dir string, m Manifest) ([]string, error) {
	if !plainName.MatchString(database) {
		return nil, fmt.Errorf("database %q is not a plain name", database)
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("data folder %q is not absolute: the engine would look below its own", dir)
	}
	// file() reads these as patterns or as an archive and knows no way to escape them.
	if strings.ContainsAny(dir, "*?{}") || strings.Contains(dir, "::") {
		return nil, fmt.Errorf("data folder %q has a character that the file() function takes for a pattern", dir)
	}
	statements := []string{"CREATE DATABASE IF NOT EXISTS " + database}
	for _, t := range m.Tables {
		columns := make([]string, 0, len(t.Columns))
		for _, c := range t.Columns {
			typ, ok := clickHouseTypes[c.Type]
			if !ok {
				return nil, fmt.Errorf("column %s.%s has a type that has no ClickHouse name: %q", t.Name, c.Name, c.Type)
			}
			columns = append(columns, c.Name+" "+typ)
		}
		statements = append(statements, fmt.Sprintf("CREATE OR REPLACE VIEW %s.%s AS SELECT * FROM file(%s, Parquet, %s)",
			database, t.Name, quote(filepath.ToSlash(dir)+"/"+string(t.Name)+"/*.parquet"), quote(strings.Join(columns, ", "))))
	}
	return statements, nil
}

var clickHouseTypes = map[string]string{
	"int32": "Int32", "int64": "Int64", "string": "String", "date": "Date",
	"decimal(15,2)": "Decimal(15, 2)", "timestamp(ms)": "DateTime64(3, 'UTC')",
}

// quote writes a ClickHouse string literal.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
