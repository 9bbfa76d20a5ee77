package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Line
	}{
		{"alone", "bench: run", []Line{{"run", ""}}},
		{"in a text", "Hello,\n\nbench: run  probe \t fill\nbye", []Line{{"run", "probe \t fill"}}},
		{"CRLF", "bench: stop\r\nx\r\n", []Line{{"stop", ""}}},
		{"any case", "Bench: Run Probe", []Line{{"run", "Probe"}}},
		{"with colons", "bench: run: probe", []Line{{"run", "probe"}}},
		{"without a blank", "bench:run", []Line{{"run", ""}}},
		{"quoted", "> bench: run\n>bench: run\n| bench: run", nil},
		{"not at the start", " bench: run\nPlease bench: run\n\tbench: run", nil},
		{"without a colon", "bench run\nBench Stop \nbenchmarks: run\nbench run shows nothing\nbench runs\n bench run", []Line{{"", "bench run"}, {"", "Bench Stop"}}},
		{"the mark mistyped", "bnech: run probe\nbench; run\nbranch: run\nbecnh: look at this\nbenc: ignore", []Line{{"", "bnech: run probe"}, {"", "benc: ignore"}}},
		{"no verb", "bench:\nbench: \nbench: :", nil},
		{"unknown", "bench: dance", []Line{{"dance", ""}}},
		{"two", "bench: stop\nbench: ignore", []Line{{"stop", ""}, {"ignore", ""}}},
		{"below a signature", "x\n-- \nbench: run", nil},
		{"below dashes", "x\n--\nbench: run", []Line{{"run", ""}}},
		{"in an appended mail", "Thanks\n\n-----Original Message-----\nFrom: x\n\nbench: run", nil},
		{"in a forwarded mail", "Thanks\n-------- Forwarded Message --------\nbench: run", nil},
		{"below a rule and From", "Thanks\n________________________________\nFrom: One <a@b.test>\nSent: Monday\n\nbench: run", nil},
		{"below From", "Thanks\n\nFrom: One <a@b.test>\nDate: Monday\n\nbench: run", nil},
		{"above an appended mail", "bench: stop\n\n-----Original Message-----\nbench: run", []Line{{"stop", ""}}},
		{"the next line is none of it", "bench: run probe\nfill", []Line{{"run", "probe"}}},
		{"letters that look alike", "bеnch: run\n\ufeffbench: run", nil},
		{"too many", strings.Repeat("bench: run\n", 100), []Line{{"run", ""}, {"run", ""}, {"run", ""}, {"run", ""}, {"run", ""}}},
		{"too long", "bench: run " + strings.Repeat("x", 2000), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Lines(c.text)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFault(t *testing.T) {
	for line, want := range map[string]string{
		"bench: run":             "",
		"bench: run probe x86":   "",
		"bench: stop it, please": "",
		"bench: ignore":          "",
		"bench: rnu":             `there is no command "rnu"; did you mean "run"?`,
		"bench: stpo now":        `there is no command "stpo"; did you mean "stop"?`,
		"bench: dance":           `there is no command "dance"; valid here: run, stop, ignore`,
		"bench: run base":        "no revision behind base",
		"benhc: run base v2":     `a command begins with "bench:"`,
	} {
		lines := Lines(line)
		if len(lines) != 1 {
			t.Errorf("%q: %v", line, lines)
			continue
		}
		if got := lines[0].Fault([]string{"x86"}); got != want || lines[0].String() != line {
			t.Errorf("%q: line %q, fault %q, want %q", line, lines[0], got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	lines := Usage(strings.Fields(strings.Repeat("a-rather-long-class ", 20)))
	if len(lines) < 8 || len(Usage([]string{"x86"})) != 6 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if len(line) > 72 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, verb := range verbs {
		if !strings.Contains(strings.Join(lines, "\n"), mark+" "+verb) {
			t.Errorf("it lacks %s", verb)
		}
	}
}

func parse(t testing.TB, text string) *mbox.Message {
	t.Helper()
	m, err := mbox.ParseMessage([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFind(t *testing.T) {
	const reply = "From: a@b.test\nMessage-ID: <2@b.test>\nIn-Reply-To: <1@b.test>\nSubject: Re: [PATCH 1/2] x\n"
	const diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	run := []Line{{"run", ""}}
	for _, c := range []struct {
		name, mail string
		want       []Line
	}{
		{"a reply", reply + "\nbench: run\n", run},
		{"no reply", "From: a@b.test\nSubject: x\n\nbench: run\n", nil},
		{"quoted", reply + "\n> bench: run\n", nil},
		{"base64", reply + "Content-Transfer-Encoding: base64\n\nYmVuY2g6IHJ1bgo=\n", run},
		{"quoted-printable", reply + "Content-Transfer-Encoding: quoted-printable\n\nbench=3A run\n", run},
		{"flowed and quoted", reply + "Content-Type: text/plain; format=flowed\n\n> On Monday \n> bench: run\n", nil},
		{"in the second text", reply + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\n\nbench: run\n--b--\n", nil},
		{"in the first text", reply + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbench: run\n--b\n\nx\n--b--\n", run},
		{"in an attachment", reply + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; filename=x.txt\n\nbench: run\n--b--\n", nil},
		{"in a mail that is forwarded", reply + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nFrom: x@y.test\nSubject: x\n\nbench: run\n--b--\n", nil},
		{"in a mail that is forwarded as it is", reply + "Content-Type: message/rfc822\n\nFrom: x@y.test\nSubject: x\n\nbench: run\n", nil},
		{"in the plain form behind HTML", reply + "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>x\n--b\n\nbench: run\n--b--\n", run},
		{"in a calendar or card", reply + "Content-Type: text/calendar\n\nbench: run\n", nil},
		{"quoted in encoded lines", reply + "Content-Transfer-Encoding: quoted-printable\n\n> x=\nbench: run\n", nil},
		{"behind a lone CR", reply + "\nHello\rbench: run\n", nil},
		{"flowed behind a soft break", reply + "Content-Type: text/plain; format=flowed\n\nDo not \nbench: run\n", nil},
		{"in HTML", reply + "Content-Type: text/html\n\nbench: run\n", nil},
		{"of two forms of one text", reply + "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nbench: run\n--b\nContent-Type: text/html\n\nbench: run\n--b--\n", run},
		{"in a patch's message", "From: a@b.test\nIn-Reply-To: <1@b.test>\nSubject: [PATCH 1/2] x\n\nbench: run\n---\n" + diff, nil},
		{"in a lone patch", "From: a@b.test\nIn-Reply-To: <1@b.test>\nSubject: x\n\nbench: run\n\n" + diff, nil},
		{"in a cover letter", "From: a@b.test\nIn-Reply-To: <1@b.test>\nSubject: [PATCH v2 0/2] x\n\nbench: run\n", nil},
		{"in a reply to a cover letter", "From: a@b.test\nIn-Reply-To: <1@b.test>\nSubject: Re: [PATCH v2 0/2] x\n\nbench: run\n", run},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Find(parse(t, c.mail))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseRun(t *testing.T) {
	classes := []string{"x86", "arm64"}
	for _, c := range []struct {
		name, args string
		want       Request
		err        string
	}{
		{"nothing", "", Request{}, ""},
		{"names", "probe fill probe", Request{Benchmarks: []string{"probe", "fill"}}, ""},
		{"parameters", "probe{n=1,alloc=pool} add/step", Request{Benchmarks: []string{"probe{n=1,alloc=pool}", "add/step"}}, ""},
		{"base", "base v2.1", Request{Base: "v2.1"}, ""},
		{"all", "probe base topic/one arm64 fill", Request{Benchmarks: []string{"probe", "fill"}, Base: "topic/one", Class: "arm64"}, ""},
		{"no revision", "probe base", Request{}, "no revision behind base"},
		{"two bases", "base a base b", Request{}, "two bases"},
		{"two classes", "x86 arm64", Request{}, "two classes of machines, x86 and arm64: give one command for each"},
		{"an option as base", "base --upload-pack=x", Request{}, `base "--upload-pack=x" is not the plain name of a commit, tag or branch`},
		{"a range", "base a..b", Request{}, `base "a..b" is not the plain name of a commit, tag or branch`},
		{"an ancestor", "base HEAD~3", Request{}, `base "HEAD~3" is not the plain name of a commit, tag or branch`},
		{"a path", "base HEAD:x", Request{}, `base "HEAD:x" is not the plain name of a commit, tag or branch`},
		{"a reflog", "base x@{1}", Request{}, `base "x@{1}" is not the plain name of a commit, tag or branch`},
		{"out of refs", "base ../../x", Request{}, `base "../../x" is not the plain name of a commit, tag or branch`},
		{"an option within", "base x/-y", Request{}, `base "x/-y" is not the plain name of a commit, tag or branch`},
		{"an option as name", "-rf", Request{}, `"-rf" cannot be the name of a benchmark`},
		{"a shell's", "a;reboot", Request{}, `"a;reboot" cannot be the name of a benchmark`},
		{"a pattern", ".*", Request{}, `".*" cannot be the name of a benchmark`},
		{"a substitution", "$(x)", Request{}, `"$(x)" cannot be the name of a benchmark`},
		{"a control character", "a\x1bb", Request{}, `"a\x1bb" cannot be the name of a benchmark`},
		{"many", strings.Repeat("x ", 51), Request{}, "51 words, limit 50"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseRun(c.args, classes)
			text := ""
			if err != nil {
				got, text = Request{}, err.Error()
			}
			if d := cmp.Diff(c.want, got); d != "" || text != c.err {
				t.Errorf("error %q, want %q; %s", text, c.err, d)
			}
		})
	}
}

// TestCases reads texts with commands to another bot, whose mark and verbs are
// replaced by ours: what matters is which line counts.
func TestCases(t *testing.T) {
	root := os.Getenv("PATCHBENCH_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(root, "cases", "mail", "cases.json"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no cases: %v", err)
	}
	var cases []struct {
		ID, Kind string
		Expect   json.RawMessage
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	verbs := strings.NewReplacer("#syz:", "bench:", "#syz", "bench:",
		"test_5_arg_cmd", Run, "unset", Run, "set", Run, "fix", Run, "test", Run, "dup", Stop, "reject", Ignore)
	ran := 0
	for _, c := range cases {
		if c.Kind != "bot-command" || !strings.HasPrefix(c.ID, "syzkaller-cmd") {
			continue // of the others only the hash of the mail is there
		}
		ran++
		var expect struct {
			Body          string
			Command, Args *string
		}
		if err := json.Unmarshal(c.Expect, &expect); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			got := Lines(verbs.Replace(expect.Body))
			if expect.Command == nil {
				if len(got) > 0 {
					t.Fatalf("got %v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %v, want one", got)
			}
			switch verb := got[0].Verb; {
			case *expect.Command == "CmdUnknown":
				if verb == Run || verb == Stop || verb == Ignore {
					t.Errorf("%s is known", verb)
				}
			case verb != Run && verb != Stop && verb != Ignore:
				t.Errorf("%s is not known", verb)
			case *expect.Command == "CmdTest" || *expect.Command == "cmdTest5":
				// Those go on in the next lines; ours end with the line.
				if all := strings.Join(strings.Fields(*expect.Args), " "); all != "" && !strings.HasPrefix(all, strings.Join(strings.Fields(got[0].Args), " ")) {
					t.Errorf("arguments %q, want a part of %q", got[0].Args, all)
				}
			case got[0].Args != verbs.Replace(*expect.Args):
				t.Errorf("arguments %q, want %q", got[0].Args, *expect.Args)
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d cases", ran)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("bench: run probe base v2\n-- \nbench: stop")
	f.Add("-----Original Message-----\nbench: run")
	f.Add("bench:::: run: --x")
	f.Add("bnech: run\nbench stop")
	f.Fuzz(func(t *testing.T, s string) {
		for _, l := range Lines(s) {
			if l.Verb+l.Args == "" || l.Verb == "" && l.Fault(nil) == "" || strings.ContainsAny(l.Verb+l.Args, "\n") {
				t.Errorf("a command %q %q", l.Verb, l.Args)
			}
			r, err := ParseRun(l.Args, []string{"x86"})
			if err != nil {
				continue
			}
			for _, w := range append(r.Benchmarks, r.Base) {
				if strings.HasPrefix(w, "-") || strings.Contains(w, "..") || strings.ContainsAny(w, " ;$`|&<>\"'\\*?()~^@\x00") {
					t.Errorf("a word %q", w)
				}
			}
		}
	})
}
