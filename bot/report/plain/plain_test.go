package plain

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `fix "a\n" & <b>`, `fix "a\n" & <b>`},
		{"escape sequences", "\x1b[2J\x1b]0;t\x07", `\x1b[2J\x1b]0;t\x07`},
		{"line ends and tabs", "a\r\nb\tc\x00\x7f", `a\x0d\x0ab\x09c\x00\x7f`},
		{"C1", "\u009b2J\u0085", `\u009b2J\u0085`},
		{"bidi", "\u202egnp\u2066x\u200f", `\u202egnp\u2066x\u200f`},
		{"invisible", "\ufeff\u200b\u00ad\u2028\U000e0041", `\ufeff\u200b\u00ad\u2028\U000e0041`},
		{"blanks of other widths", "a\u00a0b\u3000c", "a b c"},
		{"not UTF-8", "\xff\xc3(", `\xff\xc3(`},
		{"letters", "Zoë Łukasz 表 🚀", "Zoë Łukasz 表 🚀"},
		{"accents", "e\u0301 a\u0300\u0301", "e\u0301 a\u0300\u0301"},
		{"a pile of accents", "a\u0301\u0301\u0301\u0489", "a\u0301\u0301" + `\u0301\u0489`},
		{"private use", "\ue000\U000f0000", `\ue000\U000f0000`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Clean(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want string
		wide int
	}{
		{"short", 5, "short", 5},
		{"longer than that", 10, "longer t..", 10},
		{"longer than that", 9, "longer..", 8},
		{"表の速さ", 8, "表の速さ", 8},
		{"表の速さ", 7, "表の..", 6},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301", 3},
		{"\x1b[31mred\x1b[0m", 3, "\x1b[31mred\x1b[0m", 3},
		// A part of a number is another number.
		{"needs about 170 rounds", 16, "needs about..", 13},
		{"needs about 170 rounds", 17, "needs about 170..", 17},
		{"by +12.75 % or so", 8, "by +..", 6},
		{"by +12.75 % or so", 7, "by +..", 6},
		{"round 3. Then", 10, "round 3...", 10},
		{"v1.2.3 of it", 6, "v..", 3},
		{"12345678", 6, "1234..", 6},
	} {
		got := Cut(c.in, c.w)
		if got != c.want || Columns(got) != c.wide {
			t.Errorf("Cut(%q, %d) is %q of %d columns, want %q of %d", c.in, c.w, got, Columns(got), c.want, c.wide)
		}
	}
}

func TestCutName(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want string
	}{
		{"table{n=1}", 10, "table{n=1}"},
		{"checkout{tree=large,mode=cold}", 20, "checkout{..ode=cold}"},
		{"table{n=100000,size=200000}", 20, "table{n=..ze=200000}"},
		{"table{size=1000000,n=2000000}", 20, "table{siz..=2000000}"},
		{"a-benchmark-of{n=2000000}", 14, "a-benc..}"},
		{"表の速さを測る仕事", 12, "表の..る仕事"},
		{"ae\u0301e\u0301e\u0301e\u0301e\u0301z", 5, "a..e\u0301z"},
		{"1234567890123", 9, "123..0123"},
	} {
		got := CutName(c.in, c.w)
		if got != c.want || Columns(got) > c.w {
			t.Errorf("CutName(%q, %d) is %q of %d columns, want %q", c.in, c.w, got, Columns(got), c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("hash is slower (cpu +5.1 %), and table is larger by a word that is_too_long_for_a_line.", 24, "  ")
	want := []string{"hash is slower (cpu", "  +5.1 %), and table is", "  larger by a word that", "  is_too_long_for_a_li.."}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"empty", "", []string{}},
		{"the last lines", "a\nb\n\n\nc\nd\n", []string{"b", "c", "d"}},
		{"the same again", "a\nb\nb\n\nb\nc\nc\n", []string{"a", "b (3 times)", "c (2 times)"}},
		{"a long one again", strings.Repeat(strings.Repeat("y", 30)+"\n", 12), []string{"yyyyyyy.. (12 times)"}},
		{"progress", "10 %\r20 %\r30 %\r\nok\r\n", []string{"30 %", "ok"}},
		{"tabs and colours", "\tx\x1b[1m", []string{`    x\x1b[1m`}},
		{"long", strings.Repeat("y", 30), []string{strings.Repeat("y", 18) + ".."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Tail(c.log, 3, 20)
			if d := cmp.Diff(c.want, append([]string{}, got...)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestCommand has a shell read the broken lines again: the words must be those
// of the command in one line.
func TestCommand(t *testing.T) {
	words := func(text string) string {
		cmd := exec.Command("sh", "-c", "show() { for w; do printf '[%s]' \"$w\"; done; }\nshow "+text)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("needs sh: ", err)
	}
	long := strings.Repeat("abcdefghij", 8)
	for i, in := range []string{
		"bot eval series.mbox --repo kit.git",
		"bot eval " + strings.Repeat("'a file with blanks.patch' ", 9) + "--seed 7",
		"bot eval " + long + " --repo '" + long + " " + long + "' x",
		`bot eval "` + long + `" --with "a b" ` + strings.Repeat(`it\'s\ here `, 20),
		"bot eval 'it'\\''s' '" + strings.Repeat("x y ", 40) + "'",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			lines := Command(in, 40, "  ")
			for _, line := range lines {
				if Columns(line) > 40 {
					t.Errorf("%d columns: %s", Columns(line), line)
				}
			}
			if d := cmp.Diff(words(in), words(strings.Join(lines, "\n"))); d != "" {
				t.Errorf("in one line and broken (-one +broken):\n%s\n%s", d, strings.Join(lines, "\n"))
			}
		})
	}
}
