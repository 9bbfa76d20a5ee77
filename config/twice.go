package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

var header = regexp.MustCompile(`^\s*(\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?)\s*(?:#.*)?$`)

// twice says what to do when the header at line (from 1) names a table of v that
// an earlier one has named, which only [[name]] may; "" if it is not that. Whoever
// adds a table to a long file does not see that it is there already.
func twice(text string, line int, v any) string {
	all := strings.Split(text, "\n")
	if line < 1 || line > len(all) {
		return ""
	}
	this := header.FindStringSubmatch(all[line-1])
	if this == nil {
		return ""
	}
	for i, before := range all[:line-1] {
		first := header.FindStringSubmatch(before)
		switch {
		case first == nil || first[2] != this[2]:
		case several(v, this[2]):
			return fmt.Sprintf("%s stands in line %d too: write [[%s]] in both places if there are two of them, else put all into one", first[1], i+1, this[2])
		default:
			return fmt.Sprintf("%s stands in line %d already: put these keys there", first[1], i+1)
		}
	}
	return ""
}

// several says whether v, a pointer to a struct, takes the table more than once.
func several(v any, name string) bool {
	t := reflect.TypeOf(v).Elem()
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("toml") == name {
			return f.Type.Kind() == reflect.Slice
		}
	}
	return false
}
