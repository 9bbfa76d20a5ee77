package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Size is a number of bytes: an integer, or a string with a unit ("512MiB",
// "2GB", "64k"). KiB, MiB, GiB, TiB and the bare letters K, M, G, T are powers
// of 1024; KB, MB, GB, TB are powers of 1000.
type Size int64

// UnmarshalTOML reads an integer or a string.
func (s *Size) UnmarshalTOML(data any) error {
	switch v := data.(type) {
	case int64:
		*s = Size(v)
		return nil
	case string:
		n, err := parseSize(v)
		*s = Size(n)
		return err
	}
	return fmt.Errorf(`want a size such as "512MiB", is %s`, kind(data))
}

// Tables is an array of tables of which a single one may also be written as a
// plain table: [project] for [[project]]. Its path is then "project", without a
// place in an array.
type Tables[T any] []T

func (*Tables[T]) alone() {}

var units = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

func parseSize(text string) (int64, error) {
	bad := fmt.Errorf(`want a size such as "512MiB" or "2GB", is %q`, text)
	i := strings.LastIndexAny(text, "0123456789.") + 1
	unit, ok := units[strings.ToLower(strings.TrimSpace(text[i:]))]
	if !ok || i == 0 {
		return 0, bad
	}
	number := strings.TrimSpace(text[:i])
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/unit || n < math.MinInt64/unit {
			return 0, fmt.Errorf("%q is larger than any size", text)
		}
		return n * unit, nil
	}
	// ParseFloat takes more than people write as a number: hex, inf, exponents.
	if strings.Trim(number, "+-0123456789.") != "" {
		return 0, bad
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, bad
	}
	if f *= float64(unit); math.Abs(f) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is larger than any size", text)
	}
	return int64(f), nil
}

type decoder struct {
	doc  *Document
	errs Errors
}

func (d *decoder) top(data map[string]any, v any) {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: decode into %T: want a pointer to a struct", v))
	}
	d.fields(nil, data, rv.Elem())
}

func (d *decoder) fault(path []any, format string, args ...any) {
	d.doc.faulty[key(path)] = true
	text := fmt.Sprintf(format, args...)
	d.errs = append(d.errs, d.doc.Errorf(path, "%s: %s", dotted(path), text))
}

var durationType = reflect.TypeFor[time.Duration]()

func (d *decoder) value(path []any, data any, rv reflect.Value) {
	if rv.Kind() == reflect.Pointer {
		rv.Set(reflect.New(rv.Type().Elem()))
		rv = rv.Elem()
	}
	switch u := rv.Addr().Interface().(type) {
	case toml.Unmarshaler:
		if err := u.UnmarshalTOML(data); err != nil {
			d.fault(path, "%v", err)
		}
		return
	case encoding.TextUnmarshaler:
		s, ok := data.(string)
		if !ok {
			d.mismatch(path, aString, data)
		} else if err := u.UnmarshalText([]byte(s)); err != nil {
			d.fault(path, "%v", err)
		}
		return
	}
	if rv.Type() == durationType {
		d.duration(path, data, rv)
		return
	}
	switch rv.Kind() {
	case reflect.Struct:
		if table, ok := data.(map[string]any); ok {
			d.fields(path, table, rv)
		} else if isTables(data) {
			d.fault(path, "want one table: write [%s], once", dotted(path))
		} else {
			d.mismatch(path, "a table", data)
		}
	case reflect.Map:
		d.table(path, data, rv)
	case reflect.Slice:
		d.array(path, data, rv)
	case reflect.String:
		scalar(d, path, data, aString, rv.SetString)
	case reflect.Bool:
		scalar(d, path, data, truth, rv.SetBool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n, ok := data.(int64); ok && rv.OverflowInt(n) {
			d.fault(path, "%d is too large", n)
		} else {
			scalar(d, path, data, anInteger, rv.SetInt)
		}
	case reflect.Float64:
		if n, ok := data.(int64); ok {
			data = float64(n)
		}
		scalar(d, path, data, "a number", rv.SetFloat)
	case reflect.Interface:
		rv.Set(reflect.ValueOf(data))
	default:
		panic(fmt.Sprintf("config: %s: no TOML value for the type %s", dotted(path), rv.Type()))
	}
}

func scalar[T any](d *decoder, path []any, data any, want string, set func(T)) {
	if v, ok := data.(T); ok {
		set(v)
	} else {
		d.mismatch(path, want, data)
	}
}

// mismatch tells of a value of another type, and how to write it if it only lacks
// quotes or brackets, or has some too many.
func (d *decoder) mismatch(path []any, want string, data any) {
	write := ""
	switch v := data.(type) {
	case string:
		switch {
		case want == aList:
			write = fmt.Sprintf("[%q]", v)
		case want == truth && (v == "true" || v == "false"), want == anInteger && digits(v):
			write = v
		}
	case int64, float64, bool:
		if want == aString {
			write = fmt.Sprintf("\"%v\"", v)
		}
	}
	if write != "" {
		write = ": write " + write
	}
	d.fault(path, "want %s, is %s%s", want, kind(data), write)
}

// Types as messages call them.
const (
	aList     = "a list"
	aString   = "a string"
	anInteger = "an integer"
	truth     = "true or false"
)

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (d *decoder) duration(path []any, data any, rv reflect.Value) {
	switch v := data.(type) {
	case string:
		t, err := time.ParseDuration(v)
		if err != nil {
			d.fault(path, `want a duration such as "90s" or "10m", is %q`, v)
			return
		}
		rv.SetInt(int64(t))
	case int64:
		d.fault(path, `%d has no unit: write "%ds"`, v, v)
	default:
		d.mismatch(path, `a duration such as "90s" or "10m"`, data)
	}
}

func (d *decoder) table(path []any, data any, rv reflect.Value) {
	table, ok := data.(map[string]any)
	if !ok {
		d.mismatch(path, "a table", data)
		return
	}
	rv.Set(reflect.MakeMapWithSize(rv.Type(), len(table)))
	for name, v := range table {
		elem := reflect.New(rv.Type().Elem()).Elem()
		d.value(at(path, name), v, elem)
		rv.SetMapIndex(reflect.ValueOf(name).Convert(rv.Type().Key()), elem)
	}
}

func (d *decoder) array(path []any, data any, rv reflect.Value) {
	var list []any
	switch v := data.(type) {
	case []any:
		list = v
	case []map[string]any:
		for _, t := range v {
			list = append(list, t)
		}
	case map[string]any:
		if _, ok := rv.Addr().Interface().(interface{ alone() }); ok {
			rv.Set(reflect.MakeSlice(rv.Type(), 1, 1))
			d.value(path, v, rv.Index(0))
			return
		}
		if rv.Type().Elem().Kind() == reflect.Struct {
			d.fault(path, "want an array of tables: write [[%s]]", dotted(path))
			return
		}
		d.mismatch(path, aList, data)
		return
	default:
		d.mismatch(path, aList, data)
		return
	}
	rv.Set(reflect.MakeSlice(rv.Type(), len(list), len(list)))
	for i, v := range list {
		d.value(at(path, i), v, rv.Index(i))
	}
}

func (d *decoder) fields(path []any, table map[string]any, rv reflect.Value) {
	known := map[string]int{}
	var valid []string
	for i := range rv.NumField() {
		f := rv.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		known[name] = i
		valid = append(valid, name)
	}
	for name, v := range table {
		p := at(path, name)
		i, ok := known[name]
		switch {
		case !ok:
			d.errs = append(d.errs, d.doc.Errorf(p, "unknown key %q (%s)", dotted(p), Hint(name, valid)))
		default:
			d.value(p, v, rv.Field(i))
		}
	}
}

// at is path with one more part, in memory of its own.
func at(path []any, part any) []any { return append(slices.Clip(path), part) }

func isTables(data any) bool {
	_, ok := data.([]map[string]any)
	return ok
}

// kind names the TOML type of a value.
func kind(data any) string {
	switch v := data.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case int64:
		return fmt.Sprintf("the integer %d", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return fmt.Sprint(v)
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "an array of tables"
	}
	return aList
}

// Hint says which of the valid words was probably meant by word, or, if none is
// near, what all of them are.
func Hint(word string, valid []string) string {
	best, least := "", max(1, min(3, len(word)/3))+1
	for _, v := range valid {
		n := Distance(strings.ToLower(word), strings.ToLower(v))
		if strings.HasPrefix(v, word) || strings.HasPrefix(word, v) {
			n = min(n, 1)
		}
		if n < least {
			best, least = v, n
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "valid here: " + strings.Join(valid, ", ")
}

// Distance counts the bytes to insert, delete, replace or swap with their
// neighbour to turn a into b (optimal string alignment); it is 64 for long texts.
func Distance(a, b string) int {
	const long = 64
	if len(a) > long || len(b) > long {
		return long
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
