package keep

import (
	"encoding/binary"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// encoder writes a mail: numbers as varints, texts and lists behind their length.
type encoder struct{ out []byte }

func (e *encoder) number(n int) { e.out = binary.AppendVarint(e.out, int64(n)) }

func (e *encoder) flags(list ...bool) {
	n := 0
	for i, f := range list {
		if f {
			n |= 1 << i
		}
	}
	e.number(n)
}

func (e *encoder) text(s string) {
	e.number(len(s))
	e.out = append(e.out, s...)
}

func (e *encoder) texts(list []string) {
	e.number(len(list))
	for _, s := range list {
		e.text(s)
	}
}

func (e *encoder) address(a mbox.Address) {
	e.text(a.Name)
	e.text(a.Email)
}

// date writes a time to the second, with its offset.
func (e *encoder) date(t time.Time) {
	_, offset := t.Zone()
	e.out = binary.AppendVarint(e.out, t.Unix())
	e.number(offset)
}

func (e *encoder) subject(s patch.Subject) {
	e.text(s.Text)
	e.texts(s.Tags)
	e.number(s.Version)
	e.number(s.Minor)
	e.number(s.N)
	e.number(s.Total)
	e.flags(s.HasVersion, s.Numbered, s.Patch, s.Pull, s.Resend, s.Reply)
}

func (e *encoder) mail(m *Mail) {
	e.text(m.Position)
	e.text(m.Raw)
	e.subject(m.Subject)
	e.address(m.Author)
	e.date(m.Date)
	e.texts(m.Lists)
	e.text(m.Text)
	e.text(m.Hints.BaseCommit)
	e.text(m.Hints.Supersedes)
	e.number(len(m.Hints.Prerequisites))
	for _, p := range m.Hints.Prerequisites {
		e.text(p.PatchID)
		e.text(p.MessageID)
	}
	e.number(len(m.Patches))
	for i := range m.Patches {
		f := &m.Patches[i]
		e.subject(f.Subject)
		e.flags(f.Scissors, f.InBody, f.Patch.Diff != nil, f.Patch.Files != nil)
		p := &f.Patch
		e.number(p.N)
		e.address(p.Author)
		e.date(p.Date)
		e.text(p.Subject)
		e.text(p.Message)
		e.texts(p.Files)
		e.text(p.Style)
		e.text(p.DiffSHA256)
		e.text(p.Node)
		e.text(p.Parent)
		e.number(len(p.Diff))
		e.out = append(e.out, p.Diff...)
		e.text(p.Notes)
	}
}

// decoder reads what encoder wrote. It shares no bytes with its input.
type decoder struct {
	in  []byte
	bad bool
}

func (d *decoder) number() int {
	n, size := binary.Varint(d.in)
	if size <= 0 {
		d.bad, d.in = true, nil
		return 0
	}
	d.in = d.in[size:]
	return int(n)
}

// count reads the length of what takes at least a byte each.
func (d *decoder) count() int {
	n := d.number()
	if n < 0 || n > len(d.in) {
		d.bad, d.in = true, nil
		return 0
	}
	return n
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.in[:n]
	d.in = d.in[n:]
	return b
}

func (d *decoder) flags(list ...*bool) {
	n := d.number()
	for i, f := range list {
		*f = n&(1<<i) != 0
	}
}

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) texts() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.text()
	}
	return list
}

func (d *decoder) address() mbox.Address { return mbox.Address{Name: d.text(), Email: d.text()} }

func (d *decoder) date() time.Time {
	t, offset := time.Unix(int64(d.number()), 0).UTC(), d.number()
	if offset != 0 {
		t = t.In(time.FixedZone("", offset))
	}
	return t
}

func (d *decoder) subject() patch.Subject {
	s := patch.Subject{Text: d.text(), Tags: d.texts(), Version: d.number(), Minor: d.number(), N: d.number(), Total: d.number()}
	d.flags(&s.HasVersion, &s.Numbered, &s.Patch, &s.Pull, &s.Resend, &s.Reply)
	return s
}

func (d *decoder) mail() *Mail {
	m := &Mail{
		Position: d.text(), Raw: d.text(), Subject: d.subject(), Author: d.address(), Date: d.date(), Lists: d.texts(), Text: d.text(),
		Hints: patch.Hints{BaseCommit: d.text(), Supersedes: d.text()},
	}
	for range d.count() {
		m.Hints.Prerequisites = append(m.Hints.Prerequisites, mbox.Prerequisite{PatchID: d.text(), MessageID: d.text()})
	}
	for range d.count() {
		f := patch.Found{Subject: d.subject()}
		var diff, files bool
		d.flags(&f.Scissors, &f.InBody, &diff, &files)
		f.Patch = mbox.Patch{
			N: d.number(), Author: d.address(), Date: d.date(), Subject: d.text(), Message: d.text(), Files: d.texts(),
			Style: d.text(), DiffSHA256: d.text(), Node: d.text(), Parent: d.text(),
		}
		if files && f.Patch.Files == nil {
			f.Patch.Files = []string{}
		}
		if b := d.bytes(); diff {
			f.Patch.Diff = append([]byte{}, b...)
		}
		f.Patch.Notes = d.text()
		m.Patches = append(m.Patches, f)
	}
	return m
}
