// Package elfhead opens ELF files that may be a stranger's. In goes a file, out comes
// what debug/elf reads of its headers.
//
// That package reads tables of names and symbols as a whole, and unpacks those that
// are compressed to whatever size they say: a file of some KiB, or of nothing but
// holes, could fill the memory. So its headers are looked at first. What stands in
// the sections is not known here.
package elfhead

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
)

// MaxTable is the largest table, in bytes, that is worth holding in memory.
const MaxTable = 64 << 20

const maxSections = 1 << 18

// ErrOdd says that a file is none that a usual compiler or linker writes.
var ErrOdd = errors.New("not a usual ELF file")

// Open reads the headers. Names and symbols of the file that comes out can be asked
// for; the content of sections is the caller's to bound. The error is ErrOdd or that
// of elf.NewFile.
func Open(r io.ReaderAt) (*elf.File, error) {
	if !bounded(r) {
		return nil, ErrOdd
	}
	return elf.NewFile(r)
}

// bounded says that the tables which package elf reads as they stand are few and
// small.
func bounded(r io.ReaderAt) bool {
	var ident [elf.EI_NIDENT]byte
	if _, err := r.ReadAt(ident[:], 0); err != nil {
		return false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var h elf.Header64
	var sections func(n int) ([]elf.Section64, bool)
	switch elf.Class(ident[elf.EI_CLASS]) {
	case elf.ELFCLASS64:
		if readAt(r, 0, order, &h) != nil {
			return false
		}
		sections = func(n int) ([]elf.Section64, bool) {
			list := make([]elf.Section64, n)
			return list, h.Shentsize == 64 && readAt(r, int64(h.Shoff), order, list) == nil
		}
	case elf.ELFCLASS32:
		var small elf.Header32
		if readAt(r, 0, order, &small) != nil {
			return false
		}
		h.Shoff, h.Shnum, h.Shstrndx = uint64(small.Shoff), small.Shnum, small.Shstrndx
		sections = func(n int) ([]elf.Section64, bool) {
			list := make([]elf.Section32, n)
			ok := small.Shentsize == 40 && readAt(r, int64(h.Shoff), order, list) == nil
			all := make([]elf.Section64, n)
			for i, s := range list {
				all[i] = elf.Section64{Type: s.Type, Flags: uint64(s.Flags), Size: uint64(s.Size), Link: s.Link}
			}
			return all, ok
		}
	default:
		return false
	}
	if h.Shoff == 0 {
		return true // there are none
	}
	n, names := int(h.Shnum), uint32(h.Shstrndx)
	if n == 0 || names == uint32(elf.SHN_XINDEX) {
		// What does not fit into the header stands in the first section.
		first, ok := sections(1)
		if !ok || n == 0 && first[0].Size > maxSections {
			return false
		}
		if n == 0 {
			n = int(first[0].Size)
		}
		if names == uint32(elf.SHN_XINDEX) {
			names = first[0].Link
		}
	}
	list, ok := sections(n)
	if !ok {
		return false
	}
	table := func(i uint32) bool {
		return int64(i) < int64(len(list)) && elf.SectionFlag(list[i].Flags)&elf.SHF_COMPRESSED == 0 && list[i].Size <= MaxTable
	}
	if !table(names) {
		return false
	}
	for i, s := range list {
		if t := elf.SectionType(s.Type); (t == elf.SHT_SYMTAB || t == elf.SHT_DYNSYM) && !(table(uint32(i)) && table(s.Link)) {
			return false
		}
	}
	return true
}

// readAt reads a value of a fixed size.
func readAt(r io.ReaderAt, off int64, order binary.ByteOrder, v any) error {
	return binary.Read(io.NewSectionReader(r, off, int64(binary.Size(v))), order, v)
}
