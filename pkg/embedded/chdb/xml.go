package chdb

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// ownSettings are defaults of every engine. The query profiler sends signals that belong to the Go
// runtime here; implicit SELECT is a habit of the command line that no server has.
var ownSettings = map[string]string{
	"query_profiler_real_time_period_ns": "0",
	"query_profiler_cpu_time_period_ns":  "0",
	"implicit_select":                    "0",
}

// writeEngineConfig writes the engine's configuration files and gives the path of the main one.
func writeEngineConfig(dir string, cfg childConfig) (string, error) {
	users := filepath.Join(dir, "users.xml")
	main := filepath.Join(dir, "config.xml")
	if err := os.WriteFile(users, []byte(usersXML(cfg)), 0o600); err != nil {
		return "", fmt.Errorf("writing the engine's configuration: %w", err)
	}
	text := "<clickhouse>\n  <users_config>" + escape(users) + "</users_config>\n  <display_name>" + escape(cfg.Name) + "</display_name>\n</clickhouse>\n"
	if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the engine's configuration: %w", err)
	}
	return main, nil
}

// usersXML is the profile that every connection starts from: settings and the limits on them.
func usersXML(cfg childConfig) string {
	settings := maps.Clone(ownSettings)
	maps.Copy(settings, cfg.Caps)
	maps.Copy(settings, cfg.Settings)
	var b strings.Builder
	b.WriteString("<clickhouse>\n  <profiles>\n    <default>\n")
	for _, name := range sortedKeys(settings) {
		fmt.Fprintf(&b, "      <%s>%s</%s>\n", name, escape(settings[name]), name)
	}
	if len(cfg.Caps) > 0 {
		b.WriteString("      <constraints>\n")
		for _, name := range sortedKeys(cfg.Caps) {
			fmt.Fprintf(&b, "        <%s><min>1</min><max>%s</max></%s>\n", name, escape(cfg.Caps[name]), name)
		}
		b.WriteString("      </constraints>\n")
	}
	b.WriteString(`    </default>
  </profiles>
  <users>
    <default>
      <password></password>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <named_collection_control>1</named_collection_control>
    </default>
  </users>
  <quotas><default></default></quotas>
</clickhouse>
`)
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
