package build

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// part is a section of an ELF file made for a test.
type part struct {
	name    string
	kind    elf.SectionType
	flags   elf.SectionFlag
	info    uint32
	link    uint32
	content string
}

// makeELF writes a little-endian 64-bit ELF file. What is to be loaded comes
// first and makes one segment with the headers.
func makeELF(kind elf.Type, parts ...part) []byte {
	const head, program = 64, 56
	names := "\x00.shstrtab\x00"
	var body bytes.Buffer
	sections := []elf.Section64{{}}
	loaded := 0
	for _, p := range parts {
		for body.Len()%8 != 0 {
			body.WriteByte(0)
		}
		off := head + program + body.Len()
		body.WriteString(p.content)
		if p.flags&elf.SHF_ALLOC != 0 {
			loaded = head + program + body.Len()
		}
		sections = append(sections, elf.Section64{
			Name: uint32(len(names)), Type: uint32(p.kind), Flags: uint64(p.flags), Off: uint64(off), Size: uint64(len(p.content)),
			Addr: 0x400000 + uint64(off), Info: p.info, Link: p.link, Addralign: 8,
		})
		names += p.name + "\x00"
	}
	sections = append(sections, elf.Section64{Name: 1, Type: uint32(elf.SHT_STRTAB), Off: uint64(head + program + body.Len()), Size: uint64(len(names))})
	body.WriteString(names)
	var file bytes.Buffer
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(kind), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: 0x400100,
		Phoff: head, Shoff: uint64(head + program + body.Len()), Ehsize: head, Phentsize: program, Phnum: 1,
		Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Vaddr: 0x400000, Filesz: uint64(loaded), Memsz: uint64(loaded), Align: 4096}
	if kind == elf.ET_REL {
		load = elf.Prog64{}
	}
	for _, v := range []any{h, load, body.Bytes(), sections} {
		if err := binary.Write(&file, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return file.Bytes()
}

func note(owner string, kind uint32, desc string) string {
	var b bytes.Buffer
	for _, v := range []any{uint32(4), uint32(len(desc)), kind} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a Buffer takes everything
	}
	b.WriteString((owner + "\x00\x00\x00\x00")[:4] + desc)
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
	return b.String()
}

func text(code string) part {
	return part{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, content: code}
}

func debug(name, content string) part {
	return part{name: name, kind: elf.SHT_PROGBITS, content: content}
}

func gnuID(desc string) part {
	return part{name: ".note.gnu.build-id", kind: elf.SHT_NOTE, flags: elf.SHF_ALLOC, content: note("GNU", 3, desc)}
}

func goID(desc string) part {
	return part{name: ".note.go.buildid", kind: elf.SHT_NOTE, flags: elf.SHF_ALLOC, content: note("Go", 4, desc)}
}

// archive writes an ar archive of name, content pairs with the given date.
func archive(date string, members ...string) []byte {
	var b strings.Builder
	b.WriteString(arMagic)
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&b, "%-16s%-12s%-6s%-6s%-8s%-10d`\n%s", members[i], date, "7", "8", "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 != 0 {
			b.WriteByte('\n')
		}
	}
	return []byte(b.String())
}

// symbols makes a symbol table of names, defined in the sections of these
// indices, with its string table behind it; at is the index that the table gets.
func symbols(at uint32, names []string, sections []uint16) []part {
	strs := "\x00"
	var tab bytes.Buffer
	tab.Write(make([]byte, 24))
	for i, n := range names {
		_ = binary.Write(&tab, binary.LittleEndian, elf.Sym64{Name: uint32(len(strs)), Info: 0x12, Shndx: sections[i], Value: 8})
		strs += n + "\x00"
	}
	return []part{
		{name: ".symtab", kind: elf.SHT_SYMTAB, link: at + 1, info: 1, content: tab.String()},
		{name: ".strtab", kind: elf.SHT_STRTAB, content: strs},
	}
}

func relocation(target, table, symbol uint32) part {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, elf.Rela64{Off: 4, Info: uint64(symbol)<<32 | 2, Addend: -4})
	return part{name: ".rela", kind: elf.SHT_RELA, info: target, link: table, content: b.String()}
}

func TestContentSum(t *testing.T) {
	const (
		idA = "abcdefghij/klmnopqrst/uvwxyzABCD"
		idB = "0123456789/klmnopqrst/9876543210"
	)
	object := func(code string, line string, names []string, symbol uint32) []byte {
		return makeELF(elf.ET_REL, append([]part{text(code), debug(".debug_line", line), relocation(1, 5, symbol), relocation(2, 5, symbol)},
			symbols(5, names, []uint16{1, 2, 1})...)...)
	}
	tests := []struct {
		name string
		a, b []byte
		same bool
	}{
		{"code", makeELF(elf.ET_DYN, text("code one")), makeELF(elf.ET_DYN, text("code two")), false},
		{"debug sections", makeELF(elf.ET_DYN, text("code"), debug(".debug_line", "12")), makeELF(elf.ET_DYN, text("code"), debug(".debug_line", "1234567")), true},
		{"no debug sections", makeELF(elf.ET_DYN, text("code"), debug(".debug_line", "12")), makeELF(elf.ET_DYN, text("code")), true},
		{"a section of unknown use", makeELF(elf.ET_DYN, text("code"), debug(".payload", "12")), makeELF(elf.ET_DYN, text("code"), debug(".payload", "13")), false},
		{"build id", makeELF(elf.ET_EXEC, gnuID("12345678901234567890"), text("code")), makeELF(elf.ET_EXEC, gnuID("abcdefghij1234567890"), text("code")), true},
		{"a note that is none, over code", makeELF(elf.ET_EXEC, part{name: ".note.gnu.build-id", kind: elf.SHT_NOTE, flags: elf.SHF_ALLOC, content: "code one, longer than a note"}),
			makeELF(elf.ET_EXEC, part{name: ".note.gnu.build-id", kind: elf.SHT_NOTE, flags: elf.SHF_ALLOC, content: "code two, longer than a note"}), false},
		{"Go build id, everywhere", makeELF(elf.ET_EXEC, goID(idA), text("x"+idA+"y"), debug(".go.x", idA)), makeELF(elf.ET_EXEC, goID(idB), text("x"+idB+"y"), debug(".go.x", idB)), true},
		{"Go build id and code", makeELF(elf.ET_EXEC, goID(idA), text("x"+idA+"y")), makeELF(elf.ET_EXEC, goID(idB), text("x"+idB+"z")), false},
		{"a chosen Go build id", makeELF(elf.ET_EXEC, goID("code one, and more of it"), text("code one, and more of it")), makeELF(elf.ET_EXEC, goID("code two, and more of it"), text("code two, and more of it")), false},
		{"data behind the file", append(makeELF(elf.ET_DYN, text("code")), "one"...), append(makeELF(elf.ET_DYN, text("code")), "two"...), false},
		{"another type", makeELF(elf.ET_DYN, text("code")), makeELF(elf.ET_EXEC, text("code")), false},
		{"object: debug lines", object("code", "12", []string{"f", "d", "g"}, 1), object("code", "1234567", []string{"f", "d", "g"}, 1), true},
		{"object: code", object("code", "12", []string{"f", "d", "g"}, 1), object("edoc", "12", []string{"f", "d", "g"}, 1), false},
		{"object: a symbol's name", object("code", "12", []string{"f", "d", "g"}, 1), object("code", "12", []string{"f", "d", "h"}, 1), false},
		{"object: a symbol of debug sections", object("code", "12", []string{"f", "d", "g"}, 1), object("code", "12", []string{"f", "e", "g"}, 1), true},
		{"object: what is relocated", object("code", "12", []string{"f", "d", "g"}, 1), object("code", "12", []string{"f", "d", "g"}, 3), false},
		{"archive: dates", archive("1", "a.o/", "one", "b.o/", "two"), archive("22", "a.o/", "one", "b.o/", "two"), true},
		{"archive: index", archive("1", "/", "123", "a.o/", "one"), archive("1", "/", "456", "a.o/", "one"), true},
		{"archive: content", archive("1", "a.o/", "one", "b.o/", "two"), archive("1", "a.o/", "one", "b.o/", "owt"), false},
		{"archive: names", archive("1", "a.o/", "one"), archive("1", "b.o/", "one"), false},
		{"archive: long names", archive("1", "//", "a-long-name-of-a.o/\n", "/0", "one"), archive("1", "//", "a-long-name-of-b.o/\n", "/0", "one"), false},
		{"archive: BSD names", archive("1", "#1/5", "nam.oone"), archive("1", "#1/5", "man.oone"), false},
		{"archive: objects with debug lines", archive("1", "a.o/", string(object("code", "12", []string{"f", "d", "g"}, 1))),
			archive("2", "a.o/", string(object("code", "1234567", []string{"f", "d", "g"}, 1))), true},
		{"archive cut off", archive("1", "a.o/", "one")[:70], archive("2", "a.o/", "one")[:70], false},
		{"text", []byte("one"), []byte("two"), false},
		{"folder", []byte("at /host/dir/1/src end"), []byte("at /host/dir/22/src end"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := sumOf(t, test.a, "/host/dir/1"), sumOf(t, test.b, "/host/dir/22")
			if same := a == b; same != test.same {
				t.Errorf("same content: %v, want %v", same, test.same)
			}
		})
	}
}

func sumOf(t *testing.T, content []byte, folder string) string {
	t.Helper()
	sum, err := contentSum(bytes.NewReader(content), int64(len(content)), [][]byte{[]byte(folder)})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum)
}

func TestBlanker(t *testing.T) {
	for _, test := range []struct {
		needles []string
		in      string
		want    string
	}{
		{nil, "abc", "abc"},
		{[]string{"bc"}, "abcbcab", "a##ab"},
		{[]string{"ab", "abc"}, "xabcab", "x##"},
		{[]string{"aab"}, "aaab", "a#"},
		{[]string{"abc"}, "ab", "ab"},
	} {
		var needles [][]byte
		for _, n := range test.needles {
			needles = append(needles, []byte(n))
		}
		// However the bytes come in pieces, the result is the same.
		for size := 1; size <= len(test.in); size++ {
			var got bytes.Buffer
			b := newBlanker(&got, needles)
			for in := test.in; in != ""; {
				n := min(size, len(in))
				if _, err := b.Write([]byte(in[:n])); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			if err := b.flush(); err != nil {
				t.Fatal(err)
			}
			if s := strings.ReplaceAll(got.String(), blanked, "#"); s != test.want {
				t.Errorf("%q without %q in pieces of %d is %q, want %q", test.in, test.needles, size, s, test.want)
			}
		}
	}
}

// FuzzContentSum checks that no file makes the sum fail, and that bytes behind a
// file, which a program can carry, never go unnoticed.
func FuzzContentSum(f *testing.F) {
	seeds := [][]byte{
		nil, []byte("\x7fELF"), []byte(arMagic), []byte("text"),
		makeELF(elf.ET_DYN, gnuID("12345678901234567890"), goID("abcdefghij/klmnopqrst"), text("code"), debug(".debug_line", "1")),
		makeELF(elf.ET_REL, append([]part{text("code"), debug(".debug_line", "1"), relocation(1, 4, 2)}, symbols(4, []string{"f", "g"}, []uint16{1, 2})...)...),
		archive("1", "/", "123", "//", "long-name/\n", "/0", "x", "#1/2", "abc", "a.o/", string(makeELF(elf.ET_DYN, text("code")))),
	}
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		a := sumOf(t, content, "/some/folder")
		if b := sumOf(t, bytes.Clone(content), "/some/folder"); a != b {
			t.Error("the sum of the same bytes differs")
		}
		if !bytes.HasPrefix(content, []byte(arMagic)) {
			if b := sumOf(t, append(bytes.Clone(content), 'x'), "/some/folder"); a == b {
				t.Error("a byte behind the file does not count")
			}
		}
	})
}
