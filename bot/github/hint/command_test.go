package hint

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		body string
		want string // "" none, "stop", or "run NAMES"
	}{
		{"/bench", "run"},
		{"/bench\n", "run"},
		{"text\r\n/bench \t \r\nmore", "run"},
		{"/bench hash table/n=1 a.b:c_d", "run hash table/n=1 a.b:c_d"},
		{"/bench stop", "stop"},
		{"/bench  stop  ", "stop"},
		{"/bench stop now", "run stop now"},
		{"/bench first\n/bench second", "run first"},
		{"> /bench", ""},
		{" /bench", ""},
		{"\t/bench", ""},
		{"please /bench", ""},
		{"`/bench`", ""},
		{"/benchmark", ""},
		{"/Bench", ""},
		{"/bench@me", ""},
		{"```\n/bench\n```", ""},
		{"```sh\n/bench\n```\n/bench after", "run after"},
		{"~~~~\n/bench\n~~~\n/bench\n~~~~\n/bench after", "run after"},
		{"```\n/bench\n``` no end\n/bench", ""},
		{"    ```\n/bench", "run"},
		{"``\n/bench", "run"},
		{"```make``` fails\n/bench", "run"},
		{"~~~ a`b\n/bench\n~~~", ""},
		{"/bench --upload-pack=x", ""},
		{"/bench $(reboot)", ""},
		{"/bench a;b", ""},
		{"/bench a\x1bb", ""},
		{"/bench h\u00e4sh", ""},
		{"/bench " + strings.Repeat("x", 101), ""},
		{"/bench" + strings.Repeat(" x", 21), ""},
		{strings.Repeat("x", 70000) + "\n/bench", ""},
		{"", ""},
		{"<!--\n/bench\n-->", ""},
		{"<!-- a\n\n/bench stop\n", ""},
		{"text <!-- a\n/bench\n--> b\n/bench shown", "run shown"},
		{"<!-- a --> <!-- b\n/bench\n-->", ""},
		{"<!-- a -->\n/bench", "run"},
		{"an arrow <!-- that never ends\n/bench", "run"},
		{"/bench <!-- hash\n/bench -->\n", ""},
		{"```\n<!--\n```\n/bench", "run"},
		// What only looks like a command, or like another one.
		{"\uff0fbench", ""},            // a full-width solidus
		{"\u2215bench", ""},            // a division slash
		{"/b\u0435nch", ""},            // a Cyrillic letter
		{"\ufeff/bench", ""},           // behind a byte order mark
		{"\u200b/bench", ""},           // behind a space of no width
		{"/bench\u00a0stop", ""},       // a space that does not break
		{"/bench st\u043ep", ""},       // another Cyrillic letter
		{"/bench \u202epots", ""},      // backwards
		{"/bench a\u00a0b", ""},        // one name
		{"/bench stop\u200b", ""},      // more than it seems
		{"/bench a\u2028/bench b", ""}, // a line of Unicode alone
		{"/bench\x00stop", ""},
		{"/bench a\vb", ""},
		{"/bench none;\n/bench good", "run good"},
	} {
		got := ""
		if cmd, ok := Parse(c.body); ok && cmd.Stop {
			got = "stop"
		} else if ok {
			got = strings.TrimSpace("run " + strings.Join(cmd.Benchmarks, " "))
		}
		if got != c.want {
			t.Errorf("%.60q: %q, want %q", c.body, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("text\n/bench hash\n")
	f.Add("```\n/bench\n```\n/bench stop")
	f.Fuzz(func(t *testing.T, body string) {
		cmd, ok := Parse(body)
		if !ok {
			return
		}
		for _, name := range cmd.Benchmarks {
			if !isName(name) {
				t.Errorf("%q is no name of a benchmark", name)
			}
		}
		if !strings.Contains(body, word) {
			t.Errorf("a command without %s", word)
		}
	})
}
