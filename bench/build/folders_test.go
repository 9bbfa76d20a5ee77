package build

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"patchbench/bench"
)

// TestTwoFolders builds the same C and Go programs in two folders without a box,
// where each has its folder embedded, and build ids that come of it. The builds
// must be known as the same, and as another where a constant differs. (In a box
// the folder has one name for all: TestSameBuild.)
func TestTwoFolders(t *testing.T) {
	const paths = `-DWHERE="\"$PWD\""`
	where := []string{"parse.c", "#include \"kit.h\"=>#include \"kit.h\"\nconst char *const where = WHERE;"}
	tests := []struct {
		name, program, run, tool string
		changes, embed           []string
	}{
		{"C", "c", `gcc -g -O2 -Wl,--build-id ` + paths + ` -o kit main.c parse.c`, "gcc", []string{"main.c", "%ld=>%lx"}, where},
		{"C, position dependent", "c", `gcc -g -O2 -no-pie -Wl,--build-id ` + paths + ` -o kit main.c parse.c`, "gcc", []string{"main.c", "%ld=>%lx"}, where},
		{"Go", "go", `go build -buildvcs=false -o kit .`, "go", []string{"main.go", "n += len=>n -= len"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			need(t, test.tool)
			suite := bench.Suite{Build: bench.Recipe{Run: sh(test.run), Keep: []string{"kit"}}, Benchmarks: line("./kit 1 2 3")}
			if test.tool == "go" {
				suite.Build.Env = map[string]string{"GOCACHE": goCache(t)}
			}
			b := New(open(t, true), &suite, Options{})
			// As an evaluation's: names of one length, since a program that embeds
			// them lies elsewhere in memory when they grow.
			top := folder(t)
			at := func(version int, changes ...string) bench.Build {
				t.Helper()
				dir := filepath.Join(top, fmt.Sprintf("v%03d", version))
				checkout(t, dir, test.program, append(changes, test.embed...)...)
				made, err := b.Build(t.Context(), version, dir)
				if err != nil || made.State != bench.Built {
					t.Fatalf("version %d: %+v, %v", version, made, err)
				}
				return made
			}
			base, again, other := at(0), at(1), at(2, test.changes...)
			if base.Digest != again.Digest {
				t.Error("the same source built in two folders gives two digests")
			}
			if base.Digest == other.Digest {
				t.Error("another program has the same digest")
			}
			// It would prove nothing if the files had neither folders nor ids in them.
			for _, made := range []bench.Build{base, again} {
				if !bytes.Contains(read(t, filepath.Join(made.Dir, "src/kit")), []byte(filepath.Join(made.Dir, "src"))) {
					t.Errorf("the program does not hold the name of its folder %s", made.Dir)
				}
			}
			if one, two := buildID(t, base), buildID(t, again); one == "" || one == two {
				t.Errorf("build ids %q and %q: want two", one, two)
			}
		})
	}
}

// goCache is the cache of whoever runs the test, so that Go's own packages are
// not compiled anew.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// buildID is the id that a linker has put into a build's program, "" for none.
func buildID(t *testing.T, made bench.Build) string {
	t.Helper()
	f, err := elf.Open(filepath.Join(made.Dir, "src/kit"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, note := range []string{".note.go.buildid", ".note.gnu.build-id"} {
		if s := f.Section(note); s != nil {
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
	}
	return ""
}

// TestTableOfSections has the debug sections of a Go program one byte shorter, as
// they come out when another folder's name compresses better: the table that says
// so is loaded with the program, and is no part of it.
func TestTableOfSections(t *testing.T) {
	need(t, "go")
	dir := folder(t)
	checkout(t, dir, "go")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", "kit", ".")
	cmd.Dir = filepath.Join(dir, "src")
	cmd.Env = append(os.Environ(), "GOCACHE="+goCache(t), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := read(t, filepath.Join(cmd.Dir, "kit"))
	sum := func() string {
		var out bytes.Buffer
		if err := sumELF(&out, bytes.NewReader(text), int64(len(text)), nil); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	before := sum()
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	table := binary.LittleEndian.Uint64(text[40:])
	shorter := 0
	for i, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") {
			size := text[int(table)+64*i+32:]
			binary.LittleEndian.PutUint64(size, binary.LittleEndian.Uint64(size)-1)
			shorter++
		}
	}
	if shorter == 0 {
		t.Fatal("the program has no debug sections")
	}
	if sum() != before {
		t.Error("shorter debug sections make another program")
	}
}
