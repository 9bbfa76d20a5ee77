package counter

import (
	"debug/elf"
	"io"

	"patchbench/bench/elfhead"
)

// Kinds of programs.
const (
	GoProgram = "go"
	Static    = "static"
	Dynamic   = "dynamic"
)

// Kind says what an executable is, "" for what is none that is known. The file may
// be a stranger's: only its headers are read.
func Kind(file io.ReaderAt) string {
	f, err := elfhead.Open(file)
	if err != nil {
		return ""
	}
	if f.Section(".go.buildinfo") != nil {
		return GoProgram
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return Dynamic
		}
	}
	return Static
}
