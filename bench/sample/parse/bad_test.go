package parse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What each tool's line looks like around a figure, and its line in the output.
var around = []struct {
	spec, text string
	line       int
}{
	{"gobench", "pkg: a\nBenchmarkA 10 % ns/op\n", 2},
	{"google-benchmark", "---\nBenchmark   Time   CPU   Iterations\n---\nBM_A   % ns   1 ns   100\n", 4},
	{"google-benchmark", "Benchmark   Time   CPU   Iterations UserCounters...\nBM_A   1 ns   1 ns   100 bytes_per_second=%G/s\n", 2},
	{"hyperfine", "Benchmark 1: a\n  Time (mean ± σ):   % ms ±   1.0 ms    [User: 1.0 ms, System: 0.0 ms]\n", 2},
	{"hyperfine", "Benchmark 1: a\n  Time (mean ± σ):   1 ms ±   1.0 ms    [User: % ms, System: 0.0 ms]\n", 2},
	{"hyperfine", "command,mean,stddev,median,user,system,min,max\na,1,1,\"%\",1,1,1,1\n", 2},
	{"criterion", "a         time:   [1 ns % ns 3 ns]\n", 1},
	{"pytest-benchmark", "Name (time in ns)    Min    Median\n-----\na    1 (1.0)    % (1.0)\n-----\n", 3},
	{"jmh", "Benchmark  Mode  Cnt  Score   Error  Units\nA.b  avgt  3  % ±  0.1  ns/op\n", 2},
	{"catch2", "benchmark name    samples   iterations   estimated\n-----\na  10  10  1 ms\n   % ns  1 ns  1 ns\n", 4},
	{"catch2", "<Catch>\n<BenchmarkResults name=\"a\">\n<mean value=\"%\"/>\n</BenchmarkResults></Catch>\n", 3},
	{"regex:^(?P<name>\\w+): (?P<value>\\S+) ms", "x\na: % ms\n", 2},
	{"json:$.a.b", "{\"a\":\n{\"b\": \"% ms\"}}\n", 2},
}

// Every parser refuses what is no measurement, and says where.
func TestNoMeasurement(t *testing.T) {
	for _, c := range around {
		p, err := New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse([]byte(strings.ReplaceAll(c.text, "%", "1.5"))); err != nil {
			t.Errorf("%s: 1.5 is refused: %v", c.spec, err)
		}
		for _, bad := range []string{"NaN", "nan", "inf", "-Inf", "-1", "1e309", "1,5"} {
			t.Run(c.spec+" "+bad, func(t *testing.T) {
				got, err := p.Parse([]byte(strings.ReplaceAll(c.text, "%", bad)))
				if err == nil {
					t.Fatalf("%s is read as %v", bad, got)
				}
				if want := fmt.Sprintf("standard output:%d: ", c.line); !strings.HasPrefix(err.Error(), want) {
					t.Errorf("error %q does not begin with %q", err, want)
				}
			})
		}
	}
}

// Figures in JSON that are none, as programs print them that write it themselves.
func TestNoMeasurementInJSON(t *testing.T) {
	docs := []struct {
		spec, text string
		line       int
	}{
		{"google-benchmark", "{\"benchmarks\": [\n{\"name\": \"a\", \"real_time\": %, \"time_unit\": \"ns\"}]}", 2},
		{"hyperfine", "{\"results\": [{\"command\": \"a\",\n\"median\": %}]}", 2},
		{"criterion", "{\"full_id\": \"a\"}\n{\"mean\":\n{\"point_estimate\":\n%}}", 4},
		{"criterion", "{\"reason\":\"benchmark-complete\",\"id\":\"a\",\"typical\":{\"estimate\":%,\"unit\":\"ns\"}}", 1},
		{"pytest-benchmark", "{\"benchmarks\": [{\"name\": \"a\", \"stats\":\n{\"median\": %}}]}", 2},
		{"jmh", "[{\"benchmark\": \"a\", \"mode\": \"avgt\",\n\"primaryMetric\": {\"score\": %, \"scoreUnit\": \"ns/op\"}}]", 2},
		{"json:$.a[0]", "{\"a\": [\n\n%]}", 3},
	}
	for _, c := range docs {
		p, err := New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse([]byte(strings.ReplaceAll(c.text, "%", "1.5"))); err != nil {
			t.Errorf("%s: 1.5 is refused: %v", c.spec, err)
		}
		for _, bad := range []struct{ text, want string }{
			{"NaN", "NaN is no measurement"}, {"Infinity", "Infinity is no measurement"}, {"-Infinity", "-Infinity is no measurement"},
			{"nan", "is no measurement"}, {"-1", "-1 is no measurement"}, {"1e309", "1e309 is too large"}, {`"1,5"`, "decimal comma"},
			{"null", "null stands where a figure should"}, {"[1]", "a list stands where a figure should"},
		} {
			t.Run(c.spec+" "+bad.text, func(t *testing.T) {
				got, err := p.Parse([]byte(strings.ReplaceAll(c.text, "%", bad.text)))
				if err == nil {
					t.Fatalf("%s is read as %v", bad.text, got)
				}
				if want := fmt.Sprintf("standard output:%d: ", c.line); !strings.HasPrefix(err.Error(), want) && bad.text != "null" {
					t.Errorf("error %q does not begin with %q", err, want)
				}
				if !strings.Contains(err.Error(), bad.want) && bad.text != "null" {
					t.Errorf("error %q does not say %q", err, bad.want)
				}
			})
		}
	}
}

func TestOutputs(t *testing.T) {
	tests := []struct {
		name, spec, out, want string
	}{
		{"nothing", "criterion", "", "error: suite produced no results\n"},
		{"other text", "hyperfine", "hello\n", "error: suite produced no results\n"},
		{"twice", "criterion", "a time: [1 ns 2 ns 3 ns]\na time: [1 ns 2 ns 3 ns]\n",
			"error: standard output:2: a printed twice (first in line 1): run each benchmark once\n"},
		{"escapes in a name", "criterion", "\x1b]0;x\x07 time: [1 ns 2 ns 3 ns]\n\x1b]0;x\x07 time: [1 ns 2 ns 3 ns]\n",
			"error: standard output:2: \"\\x1b]0;x\\a\" printed twice (first in line 1): run each benchmark once\n"},
		{"a second document", "hyperfine", "{\"results\": []}\n{\"results\": []}\n", "error: standard output:2: a second document of results (first in line 1): run the tool once\n"},
		{"cut off", "pytest-benchmark", "{\"benchmarks\": [\n{\"name\"", "error: standard output:2: the JSON is cut off\n"},
		{"one of several lines", "json:$.v name=n", "{\"n\": \"a\", \"v\": 1}\n{\"n\": \"b\", \"v\": NaN}\n",
			"error: standard output:2: NaN is no measurement: it must be finite and not negative\n"},
		{"documents on one line", "criterion", "{\"full_id\":\"a\"}{\"mean\":{\"point_estimate\":2}}{\"full_id\":\"b\"}{\"mean\":{\"point_estimate\":3}}",
			"1\ta\twall\t2e-09 s\tlower\n1\tb\twall\t3e-09 s\tlower\n"},
		{"text like JSON", "json:$.v name=n", "[info] start\n[1/2] go\n{ x }\n{\"n\": \"a\", \"v\": 1}\n", "4\ta\tvalue\t1 1\tlower\n"},
		{"deep", "json:$.a", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "error: standard output:1: JSON nested more than 100 deep\n"},
		{"failed in Google Benchmark", "google-benchmark", "Benchmark Time CPU Iterations\nBM_A  ERROR OCCURRED: 'no file'\n",
			"error: standard output:2: BM_A: error occurred: \"no file\"\n"},
		{"failed in its JSON", "google-benchmark", "{\"benchmarks\": [{\"name\": \"a\",\n\"error_occurred\": true, \"error_message\": \"no file\"}]}",
			"error: standard output:2: a: error occurred: \"no file\"\n"},
		{"a label in Google Benchmark", "google-benchmark", "Benchmark Time CPU Iterations UserCounters...\nBM_A  2 ns  1 ns  7 k=3 nan=x of note\n",
			"2\tBM_A\twall\t2e-09 s\tlower\n2\tBM_A\tcpu\t1e-09 s\tlower\n2\tBM_A\tk\t3 1\tlower\n"},
		{"complexity", "google-benchmark", "Benchmark Time CPU Iterations\nBM_A/8  2 ns  1 ns  7\nBM_A_BigO  3.1 N  3.0 N\nBM_A_RMS  4 %  4 %\n",
			"2\tBM_A/8\twall\t2e-09 s\tlower\n2\tBM_A/8\tcpu\t1e-09 s\tlower\n"},
		{"no mean in Catch2", "catch2", "benchmark name  samples  iterations  estimated\na  10  10  1 ms\n", "error: standard output:3: a has no mean\n"},
		{"cut off in Catch2", "catch2", "benchmark name  samples  iterations  estimated\na  10  10  1 ms", "error: standard output:2: a has no mean: the output is cut off\n"},
		{"failed in Catch2", "catch2", "<Catch><BenchmarkResults name=\"a\">\n<failed message=\"no file\"/></BenchmarkResults></Catch>", "error: standard output:2: a failed: \"no file\"\n"},
		{"two test cases", "catch2", `<Catch><TestCase name="x"><BenchmarkResults name="a"><mean value="1"/></BenchmarkResults></TestCase>` +
			`<TestCase name="y"><BenchmarkResults name="a"><mean value="2"/></BenchmarkResults></TestCase></Catch> text`,
			"1\tx/a\twall\t1e-09 s\tlower\n1\ty/a\twall\t2e-09 s\tlower\n"},
		{"two files of tests", "pytest-benchmark", `{"benchmarks": [{"name": "a", "fullname": "x.py::a", "stats": {"median": 1}}, {"name": "a", "fullname": "y.py::a", "stats": {"median": 2}}]}`,
			"1\tx.py::a\twall\t1 s\tlower\n1\ty.py::a\twall\t2 s\tlower\n"},
		{"a column too few", "pytest-benchmark", "Name (time in ms)    Min    Median\na    1.0\n", "error: standard output:2: a: 1 figures in a table of 2 columns\n"},
		{"thousands", "pytest-benchmark", "Name (time in us)    Mean\na    12,345.6789 (>1000.0)\n", "2\ta\twall\t0.0123456789 s\tlower\n"},
		{"estimates without a name", "criterion", `{"mean":{"point_estimate":1}}`, "error: standard output:1: estimates without a name: print benchmark.json before each estimates.json\n"},
		{"no name beside the figure", "json:$[*].v name=n", `[{"v": 1}]`, "error: standard output:1: no member \"n\" beside the figure, as name=n asks for\n"},
		{"two figures without a name", "json:$[*]", `[1, 2]`, "1\t0\tvalue\t1 1\tlower\n1\t1\tvalue\t2 1\tlower\n"},
		{"blanks in keys, and a unit", "json:$['a b']['c d e'] unit=ms", `{"a b": {"c d e": 3}}`, "1\tresult\twall\t0.003 s\tlower\n"},
		{"carriage returns", "hyperfine", "Benchmark 1: a\r\n  Time (abs ≡):   1 ms   [User: 1.0 ms, System: 0.0 ms]\r\n",
			"2\ta\twall\t0.001 s\tlower\n2\ta\tuser\t0.001 s\tlower\n2\ta\tsys\t0 s\tlower\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, print(p.Parse([]byte(tt.out)))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestNone(t *testing.T) {
	for _, name := range Names() {
		if strings.HasSuffix(name, ":") {
			name += map[string]string{"json:": "$.a", "regex:": "(?P<value>x)"}[name]
		}
		p, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse([]byte("done\n")); !errors.Is(err, ErrNone) {
			t.Errorf("%s: error = %v, want ErrNone", name, err)
		}
		if p.Main == "" || p.MainUnit == "" {
			t.Errorf("%s has no main metric", name)
		}
	}
}

func TestNew(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"gobnch", `unknown "gobnch" (did you mean "gobench"?)`},
		{"statistics", `unknown "statistics" (valid here: catch2, criterion, gobench, google-benchmark, hyperfine, jmh, pytest-benchmark, json:, regex:)`},
		{"json", `"json" needs a path to the figures: write "json:$.results[*].mean name=command unit=s"`},
		{"regex", `"regex" needs an expression with a group for the figure: write "regex:(?P<name>\\w+): (?P<value>\\S+) ms"`},
		{"json:a.b", `json: the path starts with $: write "json:$.results[*].mean name=command unit=s"`},
		{"json:$.a..b", `json: "..b" cannot be read: a path is made of .key, ['key'], [0] and [*]`},
		{"json:$[x]", `json: "[x]" cannot be read: a path is made of .key, ['key'], [0] and [*]`},
		{"json:$.a unt=s", `json: "unt=s" is none of name=KEY, unit=UNIT, unit-key=KEY, metric=NAME, metric-key=KEY`},
		{"regex:(", "regex: missing closing ): `(?m)(`"},
		{"regex:a", "regex: no group for the figure: write (?P<value>...)"},
		{"regex:(?P<value>a)(?P<nme>b)", `regex: unknown group "nme": name, metric, value and unit are read`},
		{"regex:(?P<value_s>a)(?P<unit>b)", "regex: the unit is named in value_s and in a group: give one"},
		{"regex:(?P<value_s>a)(?P<value>b)", "regex: two groups for the figure: give one"},
		{"regex:(?P<value>a*)", "regex: it matches where there is nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			_, err := New(tt.spec)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error = %v\nwant    %s", err, tt.want)
			}
		})
	}
}
