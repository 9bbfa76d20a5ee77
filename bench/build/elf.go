package build

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"patchbench/bench/elfhead"
	"patchbench/bench/late"
)

// goBuildID is what a Go build id looks like; anything else is not blanked, so
// that no chosen text can hide a difference.
var goBuildID = late.Regexp(`^[A-Za-z0-9_-]{8,64}(/[A-Za-z0-9_-]{8,64}){1,3}$`)

// sumELF writes what matters of an ELF file when it runs or, if it is
// relocatable, when it is linked. An error means that the file is to count byte
// by byte.
func sumELF(w io.Writer, r io.ReaderAt, size int64, blanks [][]byte) error {
	f, err := elfhead.Open(r)
	if err != nil {
		return err
	}
	if len(f.Sections) == 0 || f.Machine == elf.EM_MIPS {
		return elfhead.ErrOdd
	}
	flagsAt := int64(36)
	if f.Class == elf.ELFCLASS64 {
		flagsAt = 48
	}
	flags := make([]byte, 4)
	if _, err := r.ReadAt(flags, flagsAt); err != nil {
		return err
	}
	fmt.Fprintf(w, "elf %v %v %v %d %v %v %#x %x\n", f.Class, f.Data, f.OSABI, f.ABIVersion, f.Type, f.Machine, f.Entry, flags)

	e := elfFile{File: f, r: r, size: size, blanks: blanks}
	e.notes()
	switch f.Type {
	case elf.ET_EXEC, elf.ET_DYN:
		err = e.linked(w)
	case elf.ET_REL:
		err = e.relocatable(w)
	default:
		err = elfhead.ErrOdd
	}
	if err != nil {
		return err
	}
	return e.rest(w)
}

type elfFile struct {
	*elf.File
	r      io.ReaderAt
	size   int64
	blanks [][]byte
	zero   []span // build ids
	read   int64  // bytes of content so far
}

// take checks a place in the file before it is read. Headers may name the same
// bytes again and again; a file that is read thrice over is not usual.
func (e *elfFile) take(off, n uint64) error {
	if n > uint64(e.size) || off > uint64(e.size)-n || int64(n) > 3*e.size-e.read {
		return elfhead.ErrOdd
	}
	e.read += int64(n)
	return nil
}

// notes finds the build ids: they are a digest of all sections, debug sections
// too, or of the source.
func (e *elfFile) notes() {
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOTE || s.FileSize < 16 || s.FileSize > 1024 {
			continue
		}
		note := make([]byte, s.FileSize)
		if _, err := e.r.ReadAt(note, int64(s.Offset)); err != nil {
			continue
		}
		nameSize, descSize, kind := e.ByteOrder.Uint32(note), e.ByteOrder.Uint32(note[4:]), e.ByteOrder.Uint32(note[8:])
		if nameSize != 4 || int64(descSize) > int64(len(note)-16) || len(note)-16-int(descSize) > 3 {
			continue // not one note alone
		}
		name, desc := string(note[12:16]), note[16:16+descSize]
		switch {
		case s.Name == ".note.gnu.build-id" && name == "GNU\x00" && kind == 3 && descSize <= 64:
		case s.Name == ".note.go.buildid" && name == "Go\x00\x00" && kind == 4 && goBuildID().Match(desc):
			// The linker puts the text into other places too.
			e.blanks = append([][]byte{bytes.Clone(desc)}, e.blanks...)
		default:
			continue
		}
		e.zero = append(e.zero, span{int64(s.Offset) + 16, int64(s.Offset) + 16 + int64(descSize)})
	}
}

// linked writes an executable or shared object: what the loader maps.
func (e *elfFile) linked(w io.Writer) error {
	// Where the table of sections stands, and how long it is, follows from the
	// debug sections.
	if e.Class == elf.ELFCLASS64 {
		e.zero = append(e.zero, span{40, 48}, span{60, 64})
	} else {
		e.zero = append(e.zero, span{32, 36}, span{48, 52})
	}
	// So do its lines about these. Go's linker puts the table into what is loaded.
	sections, err := e.tableOfSections()
	if err != nil {
		return err
	}
	e.zero = append(e.zero, sections)
	for _, p := range e.Progs {
		fmt.Fprintf(w, "segment %v %v %#x %d %d %d\n", p.Type, p.Flags, p.Vaddr, p.Filesz, p.Memsz, p.Align)
		if p.Type == elf.PT_LOAD {
			if err := e.take(p.Off, p.Filesz); err != nil {
				return err
			}
			if err := stream(w, e.r, int64(p.Off), int64(p.Filesz), e.blanks, e.zero); err != nil {
				return err
			}
		}
	}
	if e.read == 0 {
		return elfhead.ErrOdd // nothing is loaded
	}
	for _, s := range e.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC != 0:
			fmt.Fprintf(w, "section %q %v %v %#x %d\n", s.Name, s.Type, s.Flags, s.Addr, s.FileSize)
		case s.Type == elf.SHT_NULL || ignored(s):
		default:
			if err := e.section(w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// ignored says that a section that is not loaded cannot matter at run time.
func ignored(s *elf.Section) bool {
	switch s.Type {
	case elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_SYMTAB_SHNDX, elf.SHT_REL, elf.SHT_RELA, elf.SHT_GROUP:
		return true
	}
	switch s.Name {
	case ".comment", ".gdb_index", ".stab", ".stabstr", ".note.gnu.gold-version":
		return true
	}
	for _, p := range []string{".debug", ".zdebug", ".gnu_debug", ".gnu.debug", ".gnu.build.attributes"} {
		if strings.HasPrefix(s.Name, p) {
			return true
		}
	}
	return false
}

// section writes a section with its content as it stands in the file.
func (e *elfFile) section(w io.Writer, s *elf.Section) error {
	fmt.Fprintf(w, "section %q %v %v %#x %d %d %d\n", s.Name, s.Type, s.Flags, s.Addr, s.Size, s.Addralign, s.Entsize)
	if s.Type == elf.SHT_NOBITS {
		return nil
	}
	if err := e.take(s.Offset, s.FileSize); err != nil {
		return err
	}
	return stream(w, e.r, int64(s.Offset), int64(s.FileSize), e.blanks, e.zero)
}

// relocatable writes an object file: its sections but debug, their relocations,
// and the symbols defined in them or missing.
func (e *elfFile) relocatable(w io.Writer) error {
	symbols, err := e.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return err
	}
	for _, s := range e.Sections {
		if s.Type == elf.SHT_NULL || ignored(s) {
			continue
		}
		if err := e.section(w, s); err != nil {
			return err
		}
	}
	for _, y := range symbols {
		if y.Section == elf.SHN_XINDEX {
			return elfhead.ErrOdd
		}
		// Names of files do not matter; sections are named by relocations.
		if t := elf.ST_TYPE(y.Info); t == elf.STT_FILE || t == elf.STT_SECTION || !e.counts(y.Section) {
			continue
		}
		fmt.Fprintf(w, "symbol %s\n", e.symbol(y))
	}
	for _, s := range e.Sections {
		switch s.Type {
		case elf.SHT_REL, elf.SHT_RELA:
			err = e.relocations(w, s, symbols)
		case elf.SHT_GROUP:
			err = e.group(w, s, symbols)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counts says that the section of this index is written.
func (e *elfFile) counts(i elf.SectionIndex) bool {
	return i == elf.SHN_UNDEF || int(i) >= len(e.Sections) || !ignored(e.Sections[i])
}

// symbol tells all that a linker takes from a symbol.
func (e *elfFile) symbol(y elf.Symbol) string {
	section := fmt.Sprint(y.Section)
	if int(y.Section) < len(e.Sections) {
		section = e.Sections[y.Section].Name
	}
	return fmt.Sprintf("%q %#x %#x %q %#x %d", y.Name, y.Info, y.Other, section, y.Value, y.Size)
}

// table reads a section that is a list of numbers.
func (e *elfFile) table(s *elf.Section) ([]byte, error) {
	if s.Flags&elf.SHF_COMPRESSED != 0 || s.FileSize > elfhead.MaxTable {
		return nil, elfhead.ErrOdd
	}
	if err := e.take(s.Offset, s.FileSize); err != nil {
		return nil, err
	}
	data := make([]byte, s.FileSize)
	_, err := e.r.ReadAt(data, int64(s.Offset))
	return data, err
}

func (e *elfFile) relocations(w io.Writer, s *elf.Section, symbols []elf.Symbol) error {
	if int(s.Info) >= len(e.Sections) {
		return elfhead.ErrOdd
	}
	target := e.Sections[s.Info]
	if ignored(target) {
		return nil
	}
	data, err := e.table(s)
	if err != nil {
		return err
	}
	word := 4
	if e.Class == elf.ELFCLASS64 {
		word = 8
	}
	number := func(b []byte) uint64 {
		if word == 8 {
			return e.ByteOrder.Uint64(b)
		}
		return uint64(e.ByteOrder.Uint32(b))
	}
	entry := 2 * word
	if s.Type == elf.SHT_RELA {
		entry += word
	}
	if len(data)%entry != 0 {
		return elfhead.ErrOdd
	}
	fmt.Fprintf(w, "relocations of %q\n", target.Name)
	for ; len(data) > 0; data = data[entry:] {
		offset, info := number(data), number(data[word:])
		index, kind := info>>32, info&0xffffffff
		if word == 4 {
			index, kind = info>>8, info&0xff
		}
		against := ""
		if index > 0 {
			// Symbols leaves out the first, empty one.
			if index > uint64(len(symbols)) {
				return elfhead.ErrOdd
			}
			against = e.symbol(symbols[index-1])
		}
		addend := uint64(0)
		if entry == 3*word {
			addend = number(data[2*word:])
		}
		fmt.Fprintf(w, "%#x %d %#x %s\n", offset, kind, addend, against)
	}
	return nil
}

// group writes which sections stand or fall together.
func (e *elfFile) group(w io.Writer, s *elf.Section, symbols []elf.Symbol) error {
	data, err := e.table(s)
	if err != nil {
		return err
	}
	if len(data)%4 != 0 || len(data) == 0 || s.Info == 0 || int64(s.Info) > int64(len(symbols)) {
		return elfhead.ErrOdd
	}
	fmt.Fprintf(w, "group %#x %s:", e.ByteOrder.Uint32(data), e.symbol(symbols[s.Info-1]))
	for data = data[4:]; len(data) > 0; data = data[4:] {
		i := e.ByteOrder.Uint32(data)
		if int64(i) >= int64(len(e.Sections)) {
			return elfhead.ErrOdd
		}
		if m := e.Sections[i]; !ignored(m) {
			fmt.Fprintf(w, " %q", m.Name)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// head is the file's header.
func (e *elfFile) head() ([]byte, error) {
	head := make([]byte, 64)
	_, err := e.r.ReadAt(head, 0)
	return head, err
}

// tableOfSections is where the file says what sections it has.
func (e *elfFile) tableOfSections() (span, error) {
	head, err := e.head()
	if err != nil {
		return span{}, err
	}
	order := binary.ByteOrder(e.ByteOrder)
	from, entry := uint64(order.Uint32(head[32:])), order.Uint16(head[46:])
	if e.Class == elf.ELFCLASS64 {
		from, entry = order.Uint64(head[40:]), order.Uint16(head[58:])
	}
	to := from + uint64(entry)*uint64(len(e.Sections))
	if to < from || to > uint64(e.size) {
		return span{}, elfhead.ErrOdd
	}
	return span{int64(from), int64(to)}, nil
}

// rest writes what stands in the file behind all that the headers name: a
// program may carry data there.
func (e *elfFile) rest(w io.Writer) error {
	head, err := e.head()
	if err != nil {
		return err
	}
	sections, err := e.tableOfSections()
	if err != nil {
		return err
	}
	var segments uint64
	order := binary.ByteOrder(e.ByteOrder)
	if e.Class == elf.ELFCLASS64 {
		segments = order.Uint64(head[32:]) + uint64(order.Uint16(head[54:]))*uint64(len(e.Progs))
	} else {
		segments = uint64(order.Uint32(head[28:])) + uint64(order.Uint16(head[42:]))*uint64(len(e.Progs))
	}
	end := max(segments, uint64(sections.to))
	for _, p := range e.Progs {
		end = max(end, p.Off+p.Filesz)
	}
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL {
			end = max(end, s.Offset+s.FileSize)
		}
	}
	if end > uint64(e.size) {
		return elfhead.ErrOdd
	}
	fmt.Fprintf(w, "behind %d\n", e.size-int64(end))
	return stream(w, e.r, int64(end), e.size-int64(end), e.blanks, nil)
}
