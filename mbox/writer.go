package mbox

import (
	"bufio"
	"bytes"
	"io"
)

// writtenBy begins the separators of Write. They are the ones that public
// archives use for mboxrd, and tell Reader to unquote.
const writtenBy = "From mboxrd@z "

// Write appends messages to a mailbox in the mboxrd format, which loses nothing:
// a Reader gives the same raw bytes, except that a last line without an end of
// line gets one.
func Write(w io.Writer, msgs ...*Message) error {
	bw := bufio.NewWriter(w)
	for _, m := range msgs {
		bw.WriteString(writtenBy + "Thu Jan  1 00:00:00 1970\n")
		raw := m.Raw
		for len(raw) > 0 {
			end := lineEnd(raw, 0)
			if bytes.HasPrefix(bytes.TrimLeft(raw[:end], ">"), fromMark) {
				bw.WriteByte('>')
			}
			bw.Write(raw[:end])
			raw = raw[end:]
		}
		if len(m.Raw) > 0 && m.Raw[len(m.Raw)-1] != '\n' {
			bw.WriteByte('\n')
		}
		bw.WriteByte('\n')
	}
	return bw.Flush()
}
