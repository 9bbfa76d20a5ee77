package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/config"
)

type shape struct {
	Title  string         `toml:"title"`
	Memory config.Size    `toml:"memory"`
	Wait   time.Duration  `toml:"wait"`
	Count  int            `toml:"count"`
	Small  int8           `toml:"small"`
	Share  float64        `toml:"share"`
	On     bool           `toml:"on"`
	Tags   []string       `toml:"tags"`
	Env    map[string]int `toml:"env"`
	Any    any            `toml:"any"`
	Limit  *int           `toml:"limit"`
	Table  struct {
		Command string `toml:"command"`
		Timeout string `toml:"timeout"`
	} `toml:"table"`
	Item []struct {
		Name  string `toml:"name"`
		Count int    `toml:"count"`
		Sub   []struct {
			ID int `toml:"id"`
		} `toml:"sub"`
	} `toml:"item"`
}

// decode reads a text of which only the faults matter.
func decode(name string, text []byte, v any) error {
	_, err := config.Read(name, text, v)
	return err
}

func TestDecode(t *testing.T) {
	var got shape
	err := decode("a.toml", []byte(`
title = "x"
memory = "1.5GiB"
wait = "1m30s"
count = 7
small = -8
share = 2          # an integer is a number
on = true
tags = ["a",
  "b"]
env = { A = 1, B = 2 }
any = [1, "two"]
limit = 0
table.command = "go"
[[item]]
name = "first"
[[item.sub]]
id = 1
[[item.sub]]
id = 2
[[item]]
name = "second"
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := shape{
		Title: "x", Memory: 3 << 29, Wait: 90 * time.Second, Count: 7, Small: -8, Share: 2, On: true,
		Tags: []string{"a", "b"}, Env: map[string]int{"A": 1, "B": 2}, Any: []any{int64(1), "two"}, Limit: new(int),
	}
	want.Table.Command = "go"
	want.Item = append(want.Item, got.Item...)
	if len(got.Item) != 2 || got.Item[0].Name != "first" || got.Item[1].Name != "second" {
		t.Errorf("items are %+v", got.Item)
	} else if sub := got.Item[0].Sub; len(sub) != 2 || sub[0].ID != 1 || sub[1].ID != 2 {
		t.Errorf("items below the first are %+v", sub)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestDecodeFaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"syntax", "title = \n", []string{"f.toml:1: expected value but found '\\n' instead (near key \"title\")"}},
		{"twice", "count = 1\n\ncount = 2\n", []string{"f.toml:3: Key 'count' has already been defined. (near key \"count\")"}},
		{"table twice", "[table]\ncommand = \"x\"\n\n [table] # again\n", []string{`f.toml:4: [table] stands in line 1 already: put these keys there`}},
		{"array beside a table", "[item]\nname = \"x\"\n[[item]]\n", []string{`f.toml:3: [item] stands in line 1 too: write [[item]] in both places if there are two of them, else put all into one`}},
		{"table beside an array", "[[item]]\nname = \"x\"\n[item]\n", []string{`f.toml:3: [[item]] stands in line 1 too: write [[item]] in both places if there are two of them, else put all into one`}},
		{"unknown table twice", "[other]\n[other]\n", []string{`f.toml:2: [other] stands in line 1 already: put these keys there`}},
		{"key as table", "title = \"x\"\n[title]\n", []string{"f.toml:2: Key 'title' has already been defined."}},
		{"near miss", "[table]\ncomand = \"x\"\n", []string{`f.toml:2: unknown key "table.comand" (did you mean "command"?)`}},
		{"swapped letters", "tilte = \"x\"\n", []string{`f.toml:1: unknown key "tilte" (did you mean "title"?)`}},
		{"capitals", "Title = \"x\"\n", []string{`f.toml:1: unknown key "Title" (did you mean "title"?)`}},
		{"plural", "\n[[items]]\nname = \"x\"\n", []string{`f.toml:2: unknown key "items" (did you mean "item"?)`}},
		{"near nothing", "[table]\nxyz = 1\n", []string{`f.toml:2: unknown key "table.xyz" (valid here: command, timeout)`}},
		{"reserved is no hint", "[[item]]\nlate = 1\n", []string{`f.toml:2: unknown key "item.late" (valid here: name, count, sub)`}},
		{
			"every fault, each at its own line of an array of tables",
			"[[item]]\ncount = \"a\"\n[[item]]\ncount = 1\n[[item]]\ncount = 1.5\nnmae = \"x\"\n[[item.sub]]\nid = true\n",
			[]string{
				`f.toml:2: item.count: want an integer, is the string "a"`,
				`f.toml:6: item.count: want an integer, is the number 1.5`,
				`f.toml:7: unknown key "item.nmae" (did you mean "name"?)`,
				`f.toml:9: item.sub.id: want an integer, is true`,
			},
		},
		{
			"in lists and inline tables",
			"env = { A = 1,\n B = \"2\" }\ntags = [\n  'a', # \"]\n  2,\n]\n",
			[]string{
				`f.toml:2: env.B: want an integer, is the string "2": write 2`,
				`f.toml:5: tags: want a string, is the integer 2: write "2"`,
			},
		},
		{"after long strings", "title = \"\"\"\n[[item]]\ncount = 'x' \\\"\"\"\"\"\nany = '''\n'' ]'''\ncount = []\n", []string{`f.toml:6: count: want an integer, is a list`}},
		{"dotted and quoted keys", "table.\"com\\u006dand\" = 1\n", []string{`f.toml:1: table.command: want a string, is the integer 1: write "1"`}},
		{"table for array", "[item]\nname = \"x\"\n", []string{`f.toml:1: item: want an array of tables: write [[item]]`}},
		{"array for table", "[[table]]\n", []string{`f.toml:1: table: want one table: write [table], once`}},
		{"value for table", "table = 1\nenv = 2\nitem = 3\n", []string{
			`f.toml:1: table: want a table, is the integer 1`,
			`f.toml:2: env: want a table, is the integer 2`,
			`f.toml:3: item: want a list, is the integer 3`,
		}},
		{"duration without unit", "wait = 90\n", []string{`f.toml:1: wait: 90 has no unit: write "90s"`}},
		{"no duration", "wait = \"soon\"\n", []string{`f.toml:1: wait: want a duration such as "90s" or "10m", is "soon"`}},
		{"sizes", "memory = \"1 XB\"\n", []string{`f.toml:1: memory: want a size such as "512MiB" or "2GB", is "1 XB"`}},
		{"size of another type", "memory = true\n", []string{`f.toml:1: memory: want a size such as "512MiB", is true`}},
		{"size overflow", "memory = \"9000000TiB\"\n", []string{`f.toml:1: memory: "9000000TiB" is larger than any size`}},
		{"integer overflow", "small = 128\n", []string{`f.toml:1: small: 128 is too large`}},
		{"date", "title = 2020-01-02\n", []string{`f.toml:1: title: want a string, is a date or time`}},
		{"not in quotes", "title = me\n", []string{`f.toml:1: expected value but found "me" instead (near key "title"): put text in quotes, and write true and false in small letters`}},
		{"large truth", "on = True\n", []string{`f.toml:1: expected value but found "True" instead (near key "on"): put text in quotes, and write true and false in small letters`}},
		{"another language", "table:\n  command: go\n", []string{`f.toml:1: expected '.' or '=', but got ':' instead: write KEY = VALUE`}},
		{"backslash", "title = \"\\d+\"\n", []string{`f.toml:1: invalid escape in string '\d' (near key "title"): write \\ for a backslash, or put the text in 'single quotes'`}},
		{"Latin-1", "title = \"caf\xe9\"\n", []string{`f.toml:1: invalid UTF-8 byte: 0xe9 (near key "title"): save the file as UTF-8`}},
		{"line ends of old", "count = 1\rcount = 2\r", []string{`f.toml:1: TOML files cannot contain control characters: '0x0d' (near key "count"): end lines with a line feed`}},
		{"without brackets", "tags = \"a b\"\n", []string{`f.toml:1: tags: want a list, is the string "a b": write ["a b"]`}},
		{"in quotes", "on = \"true\"\ncount = \"many\"\n", []string{
			`f.toml:1: on: want true or false, is the string "true": write true`,
			`f.toml:2: count: want an integer, is the string "many"`,
		}},
		{"deep lists", "count = 1\nany = " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), []string{"f.toml:2: more than 32 tables or lists in each other"}},
		{"deep tables", "any = " + strings.Repeat("{a=", 50_000) + "1" + strings.Repeat("}", 50_000), []string{"f.toml:1: more than 32 tables or lists in each other"}},
		{"deep keys", "[a" + strings.Repeat(".a", 50_000) + "]\n", []string{"f.toml:1: more than 32 tables or lists in each other"}},
		{"too long", strings.Repeat("#", config.MaxBytes+1), []string{`f.toml: 262145 bytes are too many: give at most 262144`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decode("f.toml", []byte(test.text), &shape{})
			if err == nil {
				t.Fatal("no error")
			}
			var faults config.Errors
			var first *config.Error
			if !errors.As(err, &faults) || !errors.As(err, &first) || first.File != "f.toml" {
				t.Fatalf("the error is a %T", err)
			}
			if diff := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]config.Size{
		`0`: 0, `4096`: 4096, `-1`: -1, `"1B"`: 1, `"512"`: 512, `"64k"`: 64 << 10, `"64 KiB"`: 64 << 10, `"2GB"`: 2e9,
		`"2gib"`: 2 << 30, `"1TB"`: 1e12, `"0.5M"`: 1 << 19, `"-3MiB"`: -3 << 20,
	} {
		var got shape
		if err := decode("f", []byte("memory = "+text), &got); err != nil || got.Memory != want {
			t.Errorf("%s is %d (%v), want %d", text, got.Memory, err, want)
		}
	}
	for _, text := range []string{`""`, `"MiB"`, `"1e3"`, `"0x10"`, `"inf"`, `"1.2.3GB"`, `"1 2"`, `1.5`} {
		var got shape
		if err := decode("f", []byte("memory = "+text), &got); err == nil {
			t.Errorf("%s is %d, want a fault", text, got.Memory)
		}
	}
}

func TestDocument(t *testing.T) {
	var v shape
	doc, err := config.Read("f.toml", []byte("count = 1\n[[item]]\n\n[[item]]\nname = \"x\"\n[table]\ncommand = 1\n"), &v)
	if doc == nil || err == nil {
		t.Fatalf("Read gives %v, %v; want a document and a fault", doc, err)
	}
	tests := []struct {
		path []any
		has  bool
		line int
	}{
		{[]any{"count"}, true, 1},
		{[]any{"item"}, true, 2},
		{[]any{"item", 1, "name"}, true, 5},
		{[]any{"item", 1, "count"}, false, 4},
		{[]any{"item", 0, "name"}, false, 2},
		{[]any{"table", "command"}, false, 7}, // is no string
		{[]any{"nothing", 3, "here"}, false, 1},
	}
	for _, test := range tests {
		if has, line := doc.Has(test.path...), doc.Line(test.path...); has != test.has || line != test.line {
			t.Errorf("%v: has %v at line %d, want %v at %d", test.path, has, line, test.has, test.line)
		}
	}
}

func TestTables(t *testing.T) {
	type item struct {
		Name string `toml:"name"`
	}
	var v struct {
		Item config.Tables[item] `toml:"item"`
	}
	tests := []struct {
		name, text string
		want       config.Tables[item]
		path       []any
	}{
		{"one table", "[item]\nname = \"a\"\n", config.Tables[item]{{"a"}}, []any{"item", "name"}},
		{"an array of one", "[[item]]\nname = \"a\"\n", config.Tables[item]{{"a"}}, []any{"item", 0, "name"}},
		{"an array", "[[item]]\n[[item]]\nname = \"b\"\n", config.Tables[item]{{}, {"b"}}, []any{"item", 1, "name"}},
		{"in line", "item = { name = \"a\" }\n", config.Tables[item]{{"a"}}, []any{"item", "name"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v.Item = nil
			doc, err := config.Read("f.toml", []byte(test.text), &v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, v.Item); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if !doc.Has(test.path...) {
				t.Errorf("there is nothing at %v", test.path)
			}
		})
	}
	if err := decode("f.toml", []byte("[item]\nnmae = 1\n"), &v); err == nil || err.Error() != `f.toml:2: unknown key "item.nmae" (did you mean "name"?)` {
		t.Errorf("a wrong key gives %v", err)
	}
	if err := decode("f.toml", []byte("item = 1\n"), &v); err == nil || err.Error() != `f.toml:1: item: want a list, is the integer 1` {
		t.Errorf("an integer gives %v", err)
	}
}
