package starter

import (
	"path"
	"slices"
	"strings"

	"patchbench/bench/late"
)

// offline is said where a build may want to download something.
const offline = "Builds have no network: what the project depends on must lie in the tree"

var (
	goBenchmark = late.Regexp(`(?m)^func (Benchmark[A-Z_0-9]\w*|Benchmark)\(\w+ \*testing\.B\)`)
	goRequire   = late.Regexp(`(?m)^(require\s|\s+[\w./-]+\.\w+/\S+ v)`)
)

// golang builds a test binary for each package with benchmark functions.
func golang(p *project) *draft {
	if !p.has("go.mod") {
		return nil
	}
	packages := map[string]int{}
	for _, f := range p.files {
		if strings.HasSuffix(f, "_test.go") {
			if n := len(goBenchmark().FindAllString(p.read(f), -1)); n > 0 && p.ownModule(path.Dir(f)) && p.usable(f, path.Dir(f)) {
				packages[path.Dir(f)] += n
			}
		}
	}
	if len(packages) == 0 {
		return nil
	}
	d := &draft{found: count(len(packages), "package", "packages") + " with Go benchmarks"}
	d.build = []string{`run = """`}
	for _, dir := range sorted(packages) {
		binary, enter := strings.ReplaceAll(dir, "/", "-"), "cd "+dir+" && "
		if dir == "." {
			binary, enter = p.name, ""
		}
		d.build = append(d.build, "go test -c -trimpath -o $OUT/"+binary+".test ./"+strings.TrimPrefix(dir, "."))
		d.list = append(d.list, benchmark{
			name: binary, parse: "gobench",
			run: enter + "exec $OUT/" + binary + ".test -test.run=NONE -test.bench=. -test.benchtime=100ms",
		})
	}
	d.build = append(d.build, `"""`, `env = { GOFLAGS = "-buildvcs=false", GOTOOLCHAIN = "local", CGO_ENABLED = "0" }`, `cache = [{ env = "GOCACHE" }]`)
	if goRequire().MatchString(p.read("go.mod")) && p.read("vendor/modules.txt") == "" {
		d.notes = append(d.notes, offline+" (go mod vendor).")
	}
	return d
}

// ownModule says that no go.mod lies between the top and a folder.
func (p *project) ownModule(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if p.has(dir + "/go.mod") {
			return false
		}
	}
	return true
}

func sorted(m map[string]int) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

var (
	cargoSection = late.Regexp(`(?m)^\s*(\[\[?[^\]]*\]\]?)\s*(?:#.*)?$`)
	cargoName    = late.Regexp(`(?m)^\s*name\s*=\s*["']([^"']+)["']`)
	criterionDep = late.Regexp(`(?m)^\s*criterion\s*=|^\s*\[(?:.*\.)?dev-dependencies\.criterion\]`)
)

// cargo runs the benchmark programs of Criterion.
func cargo(p *project) *draft {
	text := p.read("Cargo.toml")
	if !criterionDep().MatchString(text) {
		return nil
	}
	var names []string
	heads := cargoSection().FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		if strings.ReplaceAll(text[h[2]:h[3]], " ", "") != "[[bench]]" {
			continue
		}
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if m := cargoName().FindStringSubmatch(text[h[1]:end]); m != nil && p.usable("Cargo.toml", m[1]) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		return nil
	}
	d := &draft{found: count(len(names), "Criterion benchmark", "Criterion benchmarks"), build: []string{`run = """`, "cargo bench --offline --no-run"}}
	for _, n := range names {
		// Cargo names the program after the benchmark and a hash of its own.
		d.build = append(d.build, "cp $(ls -t $CARGO_TARGET_DIR/release/deps/"+n+"-* | grep -v '\\\\.d$' | head -n 1) $OUT/"+n)
		d.list = append(d.list, benchmark{
			name: n, parse: "criterion", run: "exec $OUT/" + n + " --bench --noplot",
			more: []string{`env = { CRITERION_HOME = "/tmp/criterion" }`},
		})
	}
	d.build = append(d.build, `"""`, `cache = [{ env = "CARGO_TARGET_DIR" }]`)
	d.notes = append(d.notes, offline+" (cargo vendor).")
	return d
}

var (
	cmakeLink    = late.Regexp(`(?is)\btarget_link_libraries\s*\(\s*([^\s()]+)([^()]*)\)`)
	cmakeProgram = late.Regexp(`(?i)\badd_executable\s*\(\s*([^\s()]+)`)
)

// cmake runs the programs that link google-benchmark.
func cmake(p *project) *draft {
	if !p.has("CMakeLists.txt") {
		return nil
	}
	var list []benchmark
	for _, f := range p.named("CMakeLists.txt") {
		text := p.read(f)
		programs := map[string]bool{}
		for _, m := range cmakeProgram().FindAllStringSubmatch(text, -1) {
			programs[m[1]] = true
		}
		for _, m := range cmakeLink().FindAllStringSubmatch(text, -1) {
			linked := slices.ContainsFunc(strings.Fields(m[2]), func(s string) bool {
				return s == "benchmark" || strings.HasPrefix(s, "benchmark::") || s == "benchmark_main"
			})
			if !linked || !programs[m[1]] || !p.usable(f, m[1]) || !p.usable(f, path.Dir(f)) {
				continue
			}
			list = append(list, benchmark{name: m[1], parse: "google-benchmark", run: "exec ./" + path.Join("build", path.Dir(f), m[1]) + " --benchmark_min_time=0.1"})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &draft{
		found: count(len(list), "program", "programs") + " with google-benchmark", list: list,
		build: []string{`run = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j2"`},
	}
}

var (
	mesonBenchmark = late.Regexp(`(?s)\bbenchmark\s*\(\s*'([^']+)'\s*,\s*(\w+)`)
	mesonProgram   = late.Regexp(`(?s)\b(\w+)\s*=\s*executable\s*\(\s*'([^']+)'`)
)

// meson runs the programs of benchmark().
func meson(p *project) *draft {
	if !p.has("meson.build") {
		return nil
	}
	var list []benchmark
	for _, f := range p.named("meson.build") {
		text := p.read(f)
		programs := map[string]string{}
		for _, m := range mesonProgram().FindAllStringSubmatch(text, -1) {
			programs[m[1]] = m[2]
		}
		for _, m := range mesonBenchmark().FindAllStringSubmatch(text, -1) {
			program := programs[m[2]]
			if program == "" {
				p.left = append(p.left, "benchmark "+m[1]+" in "+f+": its program is not made there")
				continue
			}
			if p.usable(f, program) && p.usable(f, path.Dir(f)) {
				list = append(list, benchmark{name: plainName(m[1]), run: "exec ./" + path.Join("build", path.Dir(f), program)})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &draft{
		found: count(len(list), "Meson benchmark", "Meson benchmarks"), list: list,
		build: []string{`run = "meson setup build --buildtype=release && ninja -C build"`},
		notes: []string{"Arguments that meson.build gives the programs are to be added to run."},
	}
}

var pytestBenchmark = late.Regexp(`(?m)^\s*(?:async )?def test_\w+\([^)]*\bbenchmark\b`)

// pytest runs the test files that use the fixture of pytest-benchmark.
func pytest(p *project) *draft {
	wanted := slices.ContainsFunc([]string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "requirements-dev.txt", "requirements.txt"}, func(f string) bool {
		text := p.read(f)
		return strings.Contains(text, "pytest-benchmark") || strings.Contains(text, "pytest_benchmark")
	})
	if !wanted {
		return nil
	}
	var list []benchmark
	for _, f := range p.files {
		if strings.HasSuffix(f, ".py") && pytestBenchmark().MatchString(p.read(f)) && p.usable(f, f) {
			name := strings.TrimSuffix(strings.TrimPrefix(path.Base(f), "test_"), ".py")
			list = append(list, benchmark{
				name: name, parse: "pytest-benchmark",
				run:  "exec python3 -m pytest -p no:cacheprovider --benchmark-only --benchmark-disable-gc " + f,
				more: []string{`env = { PYTHONDONTWRITEBYTECODE = "1", PYTHONHASHSEED = "0", PYTHONPATH = "/build/src:/build/src/src" }`},
			})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &draft{
		found: count(len(list), "file", "files") + " with pytest-benchmark", list: list,
		build: []string{`run = "python3 -m compileall -q --invalidation-mode unchecked-hash ."`},
		notes: []string{"pytest, pytest-benchmark and what the project imports must be installed in /usr."},
	}
}

var (
	makefiles  = []string{"GNUmakefile", "makefile", "Makefile"} // as make looks for them
	makeTarget = late.Regexp(`(?m)^(bench|benchmark|benchmarks|perf|check-perf|speed)\s*::?(?:[^=]|$)`)
)

// makefile runs the targets of a Makefile that are called as benchmarks are.
func makefile(p *project) *draft {
	at := slices.IndexFunc(makefiles, p.has)
	if at < 0 {
		return nil
	}
	name := makefiles[at]
	d := &draft{build: []string{`run = "make -j2"`}}
	for _, m := range makeTarget().FindAllStringSubmatch(p.read(name), -1) {
		if !slices.ContainsFunc(d.list, func(b benchmark) bool { return b.name == m[1] }) {
			d.list = append(d.list, benchmark{
				name: m[1], run: "make -s -C /tmp/src " + m[1],
				// With the times of the files, so that make finds nothing to build.
				more: []string{`prepare = "cp -a . /tmp/src"   # a copy that make may write to`},
			})
		}
	}
	d.found = name + " without a target called bench"
	if len(d.list) > 0 {
		d.found = name + " with " + count(len(d.list), "target", "targets") + " to measure"
	}
	return d
}

// template has a build where it can be guessed, and no benchmarks.
func template(p *project) *draft {
	d := &draft{found: "nothing that says what to measure"}
	switch {
	case p.has("go.mod"):
		d.found = "a Go module without benchmark functions"
		d.build = []string{`run = "mkdir -p $OUT/bin && go build -trimpath -o $OUT/bin/ ./..."`,
			`env = { GOFLAGS = "-buildvcs=false", GOTOOLCHAIN = "local", CGO_ENABLED = "0" }`, `cache = [{ env = "GOCACHE" }]`}
	case p.has("Cargo.toml"):
		d.found = "a Cargo package without Criterion"
		d.build = []string{`run = "cargo build --offline --release"`}
	case p.has("CMakeLists.txt"):
		d.found = "a CMake project without google-benchmark"
		d.build = []string{`run = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j2"`}
	case p.has("meson.build"):
		d.found = "a Meson project without benchmarks"
		d.build = []string{`run = "meson setup build --buildtype=release && ninja -C build"`}
	case p.has("configure"):
		d.found = "a configure script"
		d.build = []string{`run = "./configure && make -j2"`}
	}
	return d
}
