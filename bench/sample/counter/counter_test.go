package counter

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden parts of testdata anew")

func tool(t testing.TB, name string) Tool {
	t.Helper()
	i := slices.Index([]string{"heap", "copies", "instructions", "forks"}, name)
	if i < 0 {
		t.Fatalf("no tool %q", name)
	}
	return Tool(i)
}

// part is the file of a name in an archive, nil if there is none.
func part(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func golden(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no test data: ", err)
	}
	return names
}

func (c Count) text() string {
	if c.Reason != "" {
		return c.Reason + "\n"
	}
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Values)) {
		fmt.Fprintf(&s, "%s %.0f\n", name, c.Values[name])
	}
	return s.String()
}

func TestRead(t *testing.T) {
	for _, name := range golden(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tl := tool(t, strings.TrimSpace(strings.TrimPrefix(string(a.Comment), "tool: ")))
			r := tl.Read(part(a, "log"))[0]
			if r == nil {
				t.Fatal("nothing is read of the program")
			}
			sites := part(a, "sites")
			if r.Forked() != (sites != nil) {
				t.Errorf("forked = %v", r.Forked())
			}
			if sites != nil {
				if err := r.Settle(sites, 0); err != nil {
					t.Fatal(err)
				}
			}
			got := r.Count(nil).text()
			if *update {
				a.Files = append(slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" }), txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(part(a, "want")), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestCount(t *testing.T) {
	const head = "== 0/7.log\n==7== Command: ./kit\n--7-- Reading syms from /build/src/kit\n"
	const seen = head + "--7-- Reading syms from /usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so\n"
	tests := []struct {
		name, log, kind, want string
	}{
		{"counted", seen + "==7== Total:     1,024 bytes in 2 blocks\n==7== At t-gmax: 512 bytes in 1 blocks\n", "", "allocs 2\nheap 512\nmalloc 1024\n"},
		{"nothing allocated", seen + "==7== Total:     0 bytes in 0 blocks\n", "", "valgrind saw no allocation in kit: it does that by other means than the C library's, or not at all\n"},
		{"go with C", seen + "==7== Total:     64 bytes in 1 blocks\n", GoProgram, "kit is a Go program: valgrind does not see its memory\n"},
		{"static", head + "==7== Total:     0 bytes in 0 blocks\n", Static, "kit is statically linked: valgrind does not see its memory\n"},
		{"killed", seen, "", "kit ended before valgrind had counted it: it was killed\n"},
		{"a fork killed", seen + "==7== Total:     64 bytes in 1 blocks\n== 0/8.log\n==8== Command: ./kit -x\n==8== Parent PID: 7\n", "", "kit ended before valgrind had counted it: it was killed\n"},
		{"another's line", seen + "==8== Total:     64 bytes in 1 blocks\n==7== Total:     1 bytes in 1 blocks\n", "", "allocs 1\nheap 0\nmalloc 1\n"},
		{"one of several", seen + "==7== Total:     64 bytes in 1 blocks\n" + strings.ReplaceAll(strings.ReplaceAll(head, "7", "9"), "kit", "tool") + "==9== Total:     0 bytes in 0 blocks\n", "",
			"tool is statically linked: valgrind does not see its memory\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Heap.Read([]byte(tt.log))[0].Count(func(file string) string {
				if file == "/build/src/kit" {
					return tt.kind
				}
				return ""
			})
			if d := cmp.Diff(tt.want, got.text()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What a child did beside its parent is told by the places in the program.
func TestSettle(t *testing.T) {
	dhat := func(pid, before, shared, own int) string {
		return fmt.Sprintf(`== 0/%d.out
{"pps":[{"tb":%d,"tbk":1,"fs":[0,1]},{"tb":%d,"tbk":2,"fs":[0,2]},{"tb":%d,"tbk":3,"fs":[0,3]}],
"ftbl":["[root]","0x1: before","0x2: shared","0x3: own"]}
`, pid, before, shared, own)
	}
	log := ""
	for pid, parent := range map[int]int{1: 0, 2: 1, 3: 2, 9: 4} {
		log += fmt.Sprintf("== 0/%d.log\n==%[1]d== Parent PID: %d\n", pid, parent)
		if pid == 1 {
			log += "--1-- Reading syms from /kit\n--1-- Reading syms from /vgpreload_dhat\n"
		}
		log += fmt.Sprintf("==%d== Total: 1,000 bytes in 10 blocks\n", pid)
	}
	r := Heap.Read([]byte(log))[0]
	if err := r.Settle([]byte(dhat(1, 100, 50, 0)+dhat(2, 100, 70, 30)+dhat(3, 100, 70, 40)+dhat(9, 5, 5, 5)), 0); err != nil {
		t.Fatal(err)
	}
	got := map[int]float64{}
	for pid, p := range r.processes {
		got[pid] = p.bytes
	}
	// The parent of the last is unknown: all is its own.
	if d := cmp.Diff(map[int]float64{1: 1000, 2: 50, 3: 10, 9: 15}, got); d != "" {
		t.Errorf("bytes by process (-want +got):\n%s", d)
	}
	for name, sites := range map[string]string{"nothing": "", "broken": "== 0/2.out\n{\n== 0/1.out\n{}\n"} {
		if err := Heap.Read([]byte(log))[0].Settle([]byte(sites), 0); err == nil {
			t.Errorf("%s written by dhat: no error", name)
		}
	}
}

func TestTools(t *testing.T) {
	tests := []struct {
		metrics []string
		want    []Tool
	}{
		{nil, nil},
		{[]string{"wall", "sys"}, nil},
		{[]string{"heap"}, []Tool{Heap}},
		{[]string{"instructions", "allocs", "malloc"}, []Tool{Heap, Instructions}},
		{Metrics(), []Tool{Heap, Copies, Instructions}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, Tools(tt.metrics)); d != "" {
			t.Errorf("%v (-want +got):\n%s", tt.metrics, d)
		}
	}
	for _, name := range Metrics() {
		if m := Metric(name); !m.Exact || !m.Tested || m.Unit == "" {
			t.Errorf("%s is no exact metric: %+v", name, m)
		}
	}
}

// The commands are shell lines: each parses, and the program's arguments arrive.
func TestCommands(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not there")
	}
	for tl := Heap; tl <= Forks; tl++ {
		c := tl.Command([]string{"a b", "$c"})
		if d := cmp.Diff([]string{"sh", "a b", "$c"}, c[3:]); d != "" {
			t.Errorf("arguments (-want +got):\n%s", d)
		}
		for _, line := range []string{c[2], tl.CollectSites()[2], Collect()[2]} {
			if out, err := exec.Command(sh, "-n", "-c", line).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"0/7.log": "==7== Total: 1\n==7== other\nTotal:\n", "1/8.log": "==8== I   refs:  2\n", "x": "==1== Total: 2\n"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("7.log", filepath.Join(dir, "0", "9.log")); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", Collect()[1:]...)
	c.Env = append(os.Environ(), DirVariable+"="+dir)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("== 0/7.log\n==7== Total: 1\n== 1/8.log\n==8== I   refs:  2\n", string(out)); d != "" {
		t.Errorf("collected (-want +got):\n%s", d)
	}
}

func TestKind(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ file, want string }{{self, GoProgram}, {"counter.go", ""}}
	if cc, err := exec.LookPath("gcc"); err == nil {
		for kind, option := range map[string]string{Dynamic: "-O0", Static: "-static"} {
			file := filepath.Join(t.TempDir(), kind)
			c := exec.Command(cc, option, "-x", "c", "-o", file, "-")
			c.Stdin = strings.NewReader("int main(void) { return 0; }\n")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			tests = append(tests, struct{ file, want string }{file, kind})
		}
	}
	for _, tt := range tests {
		f, err := os.Open(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := Kind(f); got != tt.want {
			t.Errorf("Kind(%s) = %q, want %q", tt.file, got, tt.want)
		}
		f.Close()
	}
}

// What a program leaves in the place of valgrind's files gives figures or a reason.
func FuzzRead(f *testing.F) {
	for _, name := range golden(f) {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int(tool(f, strings.TrimSpace(strings.TrimPrefix(string(a.Comment), "tool: ")))), part(a, "log"), part(a, "sites"))
	}
	f.Fuzz(func(t *testing.T, n int, log, sites []byte) {
		tl := Tool(uint(n) % 4)
		for k, r := range tl.Read(log) {
			if r.Settle(bytes.Clone(sites), k) != nil {
				continue
			}
			c := r.Count(nil)
			if (c.Reason == "") != (len(c.Values) > 0) {
				t.Errorf("%+v", c)
			}
			for name, v := range c.Values {
				if !(v >= 0) || v > 1e300 || !slices.Contains(tl.Of(), name) {
					t.Errorf("%s = %v", name, v)
				}
			}
		}
	})
}
