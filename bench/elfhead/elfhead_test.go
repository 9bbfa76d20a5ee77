package elfhead

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
)

// far is a file of 1 TiB whose bytes behind the first are all zero.
type far struct{ head []byte }

func (f far) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > 1<<40-int64(len(p)) {
		return 0, io.EOF
	}
	clear(p)
	if off < int64(len(f.head)) {
		copy(p, f.head[off:])
	}
	return len(p), nil
}

// file makes one with sections, of which the second is that of names. What they hold
// begins at 4096.
func file(t *testing.T, class elf.Class, order binary.ByteOrder, header elf.Header64, sections []elf.Section64, content []byte) far {
	t.Helper()
	var b bytes.Buffer
	ident := [16]byte{0x7f, 'E', 'L', 'F', byte(class), byte(elf.ELFDATA2LSB), 1}
	if order == binary.ByteOrder(binary.BigEndian) {
		ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	h := header
	h.Ident, h.Type, h.Version, h.Machine = ident, uint16(elf.ET_REL), 1, uint16(elf.EM_PPC64)
	var all []any
	if class == elf.ELFCLASS64 {
		h.Shoff, h.Shentsize = 64, 64
		all = []any{h, sections}
	} else {
		all = []any{elf.Header32{Ident: ident, Type: h.Type, Version: 1, Machine: uint16(elf.EM_PPC), Shoff: 52, Shentsize: 40, Shnum: h.Shnum, Shstrndx: h.Shstrndx}}
		for _, s := range sections {
			all = append(all, elf.Section32{Name: s.Name, Type: s.Type, Flags: uint32(s.Flags), Off: uint32(s.Off), Size: uint32(s.Size), Link: s.Link})
		}
	}
	for _, v := range all {
		if err := binary.Write(&b, order, v); err != nil {
			t.Fatal(err)
		}
	}
	b.Write(make([]byte, 4096-b.Len()))
	b.Write(content)
	return far{b.Bytes()}
}

// packed is a section's content that unpacks to as many zeros.
func packed(t *testing.T, zeros int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(zeros), Addralign: 1}); err != nil {
		t.Fatal(err)
	}
	z := zlib.NewWriter(&b)
	if _, err := z.Write(make([]byte, zeros)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOpen opens files whose tables are larger than they look.
func TestOpen(t *testing.T) {
	const zeros = 32 << 20
	bomb := packed(t, zeros)
	small := []byte("\x00name\x00")
	names := elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: 4096, Size: uint64(len(small))}
	large, squeezed := names, names
	large.Size = 1 << 39
	squeezed.Size, squeezed.Flags = uint64(len(bomb)), uint64(elf.SHF_COMPRESSED)
	symbols := func(link uint32, size uint64) elf.Section64 {
		return elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: 4096, Size: size, Link: link}
	}
	two := elf.Header64{Shnum: 2, Shstrndx: 1}
	three := elf.Header64{Shnum: 3, Shstrndx: 1}
	four := elf.Header64{Shnum: 4, Shstrndx: 1}
	little, big := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	for _, tt := range []struct {
		name string
		file io.ReaderAt
		odd  bool
	}{
		{"usual", file(t, elf.ELFCLASS64, little, three, []elf.Section64{{}, names, symbols(1, 48)}, small), false},
		{"of 32 bits, from the other end", file(t, elf.ELFCLASS32, big, three, []elf.Section64{{}, names, symbols(1, 32)}, small), false},
		{"debug sections may be packed", file(t, elf.ELFCLASS64, little, three, []elf.Section64{{}, names, {Type: uint32(elf.SHT_PROGBITS), Off: 4096, Size: 64, Flags: uint64(elf.SHF_COMPRESSED)}},
			append(append([]byte{}, bomb[:24]...), small...)), false},
		{"packed names", file(t, elf.ELFCLASS64, little, two, []elf.Section64{{}, squeezed}, bomb), true},
		{"names without end", file(t, elf.ELFCLASS64, little, two, []elf.Section64{{}, large}, nil), true},
		{"names of symbols without end", file(t, elf.ELFCLASS64, little, four, []elf.Section64{{}, names, large, symbols(2, 48)}, small), true},
		{"packed names of symbols", file(t, elf.ELFCLASS64, little, four, []elf.Section64{{}, names, squeezed, symbols(2, 48)}, bomb), true},
		{"symbols without end", file(t, elf.ELFCLASS64, little, three, []elf.Section64{{}, names, symbols(1, 24<<34)}, small), true},
		{"names of symbols that are not there", file(t, elf.ELFCLASS64, little, three, []elf.Section64{{}, names, symbols(9, 48)}, small), true},
		{"sections without end", file(t, elf.ELFCLASS64, little, elf.Header64{Shstrndx: 1}, []elf.Section64{{Size: 1 << 32}, names}, small), true},
		{"no ELF", far{[]byte("#!/bin/sh\n")}, true},
		{"nothing", bytes.NewReader(nil), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Open(tt.file)
			if err == nil {
				_, err = f.Symbols()
				if errors.Is(err, elf.ErrNoSymbols) {
					err = nil
				}
			}
			runtime.ReadMemStats(&after)
			if odd := errors.Is(err, ErrOdd); odd != tt.odd || !odd && err != nil {
				t.Errorf("%v, odd should be %t", err, tt.odd)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
				t.Errorf("took %d bytes of memory", got)
			}
		})
	}
}

// TestOwnProgram opens what this machine's linker has written.
func TestOwnProgram(t *testing.T) {
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	f, err := Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	if f.Section(".text") == nil {
		t.Error("no section .text")
	}
}
