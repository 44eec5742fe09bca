package wire

import "github.com/pointsman/pointsman/pkg/engine"

// Text reads a result of one column of text to its end, as most engines send their plans, and gives its last row. What submitting it
// failed of is passed on.
func Text(rows engine.Rows, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	text := ""
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return "", err
		}
		if len(values) == 1 {
			text, _ = values[0].(string)
		}
	}
	return text, rows.Err()
}
