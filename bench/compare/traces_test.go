package compare

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"patchbench/bench"
)

// run is one recorded run of a benchmark.
type run struct {
	build, pos          int
	wall, cpu, rss      float64
	psi, nivcsw, faults float64
}

// trace is the recorded rounds of one benchmark, each with a run of every build
// in the order in which they ran, the planted changes taken out.
type trace struct {
	bench  string
	rounds [][]run
}

// planted are the changes in the recordings, from that build on.
var planted = []struct {
	bench    string
	build    int
	cpu, rss float64
}{
	{"cpu", 2, 1.02, 1}, {"cpu", 4, .97, 1}, {"cpu", 5, 1.01, 1}, {"cpu", 7, 1.05, 1},
	{"cpu", 3, 1, 1.02}, {"cpu", 6, 1, .97},
	{"alloc", 3, 1.05, 1}, {"alloc", 6, 1.02, 1}, {"alloc", 7, .97, 1},
	{"io", 5, 1.05, 1},
}

// shared finds a folder of recorded cases.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PATCHBENCH_SHARED")
	if dir == "" {
		// The project's root is two folders up.
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "cases", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("recorded cases are missing: %v", err)
		}
		t.Skipf("recorded cases are missing: %v", err)
	}
	return dir
}

// recorded reads the runs in random order.
func recorded(t testing.TB) []trace {
	t.Helper()
	dir := shared(t, "traces")
	files, err := filepath.Glob(filepath.Join(dir, "c_random_*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces in %s: %v", dir, err)
	}
	index := map[string]int{}
	var out []trace
	for fi, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		col := map[string]int{}
		for i, h := range lines[0] {
			col[h] = i
		}
		num := func(line []string, name string) float64 {
			x, err := strconv.ParseFloat(line[col[name]], 64)
			if err != nil {
				t.Fatalf("%s: %s: %v", files[fi], name, err)
			}
			return x
		}
		for _, line := range lines[1:] {
			b := line[col["bench"]]
			if _, ok := index[b]; !ok {
				index[b] = len(out)
				out = append(out, trace{bench: b})
			}
			tr := &out[index[b]]
			round := int(num(line, "block")) + 20*fi
			for len(tr.rounds) <= round {
				tr.rounds = append(tr.rounds, nil)
			}
			r := run{
				build: int(num(line, "build")), pos: int(num(line, "pos")),
				wall: num(line, "wall"), cpu: num(line, "user") + num(line, "sys"), rss: num(line, "maxrss_kb") * 1024,
				psi: num(line, "psi_us") * 1000, nivcsw: num(line, "nivcsw"), faults: num(line, "minflt"),
			}
			for _, p := range planted {
				if p.bench == b && r.build >= p.build {
					r.cpu /= p.cpu
					r.wall /= p.cpu
					r.rss /= p.rss
				}
			}
			tr.rounds[round] = append(tr.rounds[round], r)
		}
	}
	return out
}

// ownTraces reads the samples.jsonl files below a folder, of series whose versions
// are all equal, as deploy/truth.sh leaves them: runs that the method was not
// tuned on.
func ownTraces(t testing.TB, dir string) []trace {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "aa-*", "out", "samples.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no aa-*/out/samples.jsonl below %s (%v): deploy/truth.sh makes them", dir, err)
	}
	index := map[string]int{}
	var out []trace
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			bench          string
			round, version int
		}
		runs := map[key]*run{}
		var order []key
		for line := range bytes.Lines(text) {
			var s bench.Sample
			if err := json.Unmarshal(line, &s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if s.Twin || s.Discarded != "" || s.Failed != nil || s.Position == nil {
				continue
			}
			k := key{s.Benchmark, s.Round, s.Version}
			r := runs[k]
			if r == nil {
				r = &run{build: s.Version, pos: *s.Position, psi: s.Covariates["psi_ns"], nivcsw: s.Covariates["nivcsw"]}
				runs[k] = r
				order = append(order, k)
			}
			switch s.Metric {
			case bench.Wall.Name:
				r.wall = s.Value
			case bench.CPU.Name:
				r.cpu = s.Value
			case bench.RSS.Name:
				r.rss = s.Value
			}
		}
		for i := 0; i < len(order); {
			k := order[i]
			var round []run
			for ; i < len(order) && order[i].bench == k.bench && order[i].round == k.round; i++ {
				round = append(round, *runs[order[i]])
			}
			if len(round) != 8 {
				continue // cut short
			}
			at, ok := index[k.bench]
			if !ok {
				at = len(out)
				index[k.bench] = at
				out = append(out, trace{bench: k.bench})
			}
			out[at].rounds = append(out[at].rounds, round)
		}
	}
	return out
}

// plant is a change put into a series: cpu and wall of one benchmark, or rss.
type plant struct {
	bench, metric string
	at            int // from this version on
	factor        float64
}

// series makes the samples of n rounds without a change, except the planted
// ones: rounds are drawn from the recorded, and within each the versions are
// dealt anew to the runs.
func series(traces []trace, n int, rng *rand.Rand, plants ...plant) []bench.Sample {
	var out []bench.Sample
	for _, tr := range traces {
		order := rng.Perm(len(tr.rounds))
		for r := range n {
			runs := tr.rounds[order[r%len(order)]]
			versions := rng.Perm(len(runs))
			for i, x := range runs {
				v := versions[i]
				for _, p := range plants {
					if p.bench == tr.bench && v >= p.at {
						if p.metric == "rss" {
							x.rss *= p.factor
						} else {
							x.cpu *= p.factor
							x.wall *= p.factor
						}
					}
				}
				pos := x.pos
				cov := map[string]float64{"psi_ns": x.psi, "nivcsw": x.nivcsw}
				add := func(m bench.Metric, value float64) {
					out = append(out, bench.Sample{
						Round: r + 1, Version: v, Benchmark: tr.bench, Metric: m.Name, Unit: m.Unit,
						Value: value, Position: &pos, Covariates: cov,
					})
				}
				add(bench.Wall, x.wall)
				add(bench.CPU, x.cpu)
				add(bench.RSS, x.rss)
			}
		}
	}
	return out
}

func flagged(s bench.Step) bool { return s.Verdict == bench.Better || s.Verdict == bench.Worse }

func builtVersions(n int) []bench.Version {
	list := make([]bench.Version, n)
	for i := range list {
		list[i] = bench.Version{N: i, State: bench.Built}
		list[i].Name = list[i].Label(n - 1)
	}
	return list
}
