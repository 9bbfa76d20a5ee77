package suite_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/suite"
)

const variants = `
[build]
run = "make ALLOC={alloc} O={opt} # {{x}}"
keep = ["kit-{alloc}"]
env = { A = "{alloc}" }
params = { alloc = ["pool", "none"], opt = [2, 3] }

[[benchmark]]
name = "hash"
run = "./kit {n}"
params = { n = [10, 20] }

[[benchmark]]
name = "start"
run = "./kit"
`

// drawVariants shows recipes and the benchmarks that run on them.
func drawVariants(s *bench.Suite) []string {
	var list []string
	for i, r := range s.Variants {
		list = append(list, fmt.Sprintf("%d %v: %s, %v, %v", i, r.Params, r.Run, r.Keep, r.Env))
	}
	for _, b := range s.Benchmarks {
		list = append(list, fmt.Sprintf("on %d: %s: %s", b.Variant, b.Key(), b.Run))
	}
	return list
}

func TestVariants(t *testing.T) {
	s, err := suite.Parse("s.toml", []byte(variants))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 map[alloc:pool opt:2]: make ALLOC=pool O=2 # {x}, [kit-pool], map[A:pool]",
		"1 map[alloc:pool opt:3]: make ALLOC=pool O=3 # {x}, [kit-pool], map[A:pool]",
		"2 map[alloc:none opt:2]: make ALLOC=none O=2 # {x}, [kit-none], map[A:none]",
		"3 map[alloc:none opt:3]: make ALLOC=none O=3 # {x}, [kit-none], map[A:none]",
	}
	for k, v := range []string{"alloc=pool,%sopt=2", "alloc=pool,%sopt=3", "alloc=none,%sopt=2", "alloc=none,%sopt=3"} {
		for _, n := range []string{"10", "20"} {
			want = append(want, fmt.Sprintf("on %d: hash{"+v+"}: ./kit %s", k, "n="+n+",", n))
		}
	}
	for k, v := range []string{"alloc=pool,opt=2", "alloc=pool,opt=3", "alloc=none,opt=2", "alloc=none,opt=3"} {
		want = append(want, fmt.Sprintf("on %d: start{%s}: ./kit", k, v))
	}
	if d := cmp.Diff(want, drawVariants(s)); d != "" {
		t.Errorf("variants (-want +got):\n%s", d)
	}
	if d := cmp.Diff(s.Variants[0], s.Build); d != "" {
		t.Errorf("the first recipe (-variants +build):\n%s", d)
	}
}

// Without parameters of the build its braces are the shell's.
func TestNoVariants(t *testing.T) {
	s, err := suite.Parse("s.toml", []byte("[build]\nrun = \"awk '{print}' {{x}}\"\n[[benchmark]]\nname = \"b\"\nrun = \"true\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Variants != nil || s.Build.Run.Line != "awk '{print}' {{x}}" || s.Benchmarks[0].Params != nil {
		t.Errorf("suite = %+v", s)
	}
}

func TestValues(t *testing.T) {
	s, err := suite.Parse("s.toml", []byte(variants))
	if err != nil {
		t.Fatal(err)
	}
	rest, values, recipes, err := suite.Values(s, "alloc")
	if err != nil {
		t.Fatal(err)
	}
	got := drawVariants(rest)
	for k, list := range recipes {
		for i, r := range list {
			got = append(got, fmt.Sprintf("%d %s: %s", k, values[i], r.Run))
		}
	}
	want := []string{
		"0 map[opt:2]: make ALLOC=pool O=2 # {x}, [kit-pool], map[A:pool]",
		"1 map[opt:3]: make ALLOC=pool O=3 # {x}, [kit-pool], map[A:pool]",
		"on 0: hash{n=10,opt=2}: ./kit 10", "on 0: hash{n=20,opt=2}: ./kit 20",
		"on 1: hash{n=10,opt=3}: ./kit 10", "on 1: hash{n=20,opt=3}: ./kit 20",
		"on 0: start{opt=2}: ./kit", "on 1: start{opt=3}: ./kit",
		"0 pool: make ALLOC=pool O=2 # {x}", "0 none: make ALLOC=none O=2 # {x}",
		"1 pool: make ALLOC=pool O=3 # {x}", "1 none: make ALLOC=none O=3 # {x}",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("by value (-want +got):\n%s", d)
	}
}

func TestValuesRefused(t *testing.T) {
	const head = "[build]\nrun = \"make {alloc}\"\nparams = { alloc = [\"pool\", \"none\"] }\n[[benchmark]]\nname = \"b\"\n"
	tests := []struct{ name, text, param, want string }{
		{"no parameters", "[[benchmark]]\nname = \"b\"\nrun = \"true\"\n", "alloc", "compare the values of alloc: suite s has no build.params"},
		{"misspelt", head + "run = \"true\"\n", "allok", `compare the values of allok: suite s has no such build parameter (did you mean "alloc"?)`},
		{
			"used by a benchmark", head + "run = \"./kit-{alloc}\"\n", "alloc",
			"compare the values of alloc: benchmark b uses {alloc} itself and runs another command for each value: leave it to the build",
		},
		{
			"one value", "[build]\nrun = \"make {alloc}\"\nparams = { alloc = [\"pool\"] }\n[[benchmark]]\nname = \"b\"\nrun = \"true\"\n", "alloc",
			`compare the values of alloc: it has only "pool"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := suite.Parse("s.toml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := suite.Values(s, tt.param); err == nil || err.Error() != tt.want {
				t.Errorf("error = %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("one parameter, no variant left", func(t *testing.T) {
		s, err := suite.Parse("s.toml", []byte(head+"run = \"true\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		rest, _, recipes, err := suite.Values(s, "alloc")
		if err != nil || rest.Variants != nil || len(recipes) != 1 || len(recipes[0]) != 2 {
			t.Errorf("rest %+v, recipes %+v, %v", rest, recipes, err)
		}
	})
}
