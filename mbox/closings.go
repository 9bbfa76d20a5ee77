package mbox

import "bytes"

// closings are the lines that may end a multipart in what a Reader holds, as far as
// it has looked ahead: each line is looked at once, however many mails ask for the
// end of theirs.
type closings struct {
	at    map[string][]int64 // where in the input each line begins, ascending
	count int                // of all
	to    int64              // up to where in the input lines were looked at
}

// maxClosings bounds what is held. Where there are more, a multipart whose end does
// not come before a separator counts as one whose end got lost.
const maxClosings = 50_000

// closedBehind looks for the line that closes a multipart behind the separator at
// pos, as far as the mail may reach, and gives the offset behind it.
func (r *Reader) closedBehind(pos int, line []byte) (int, bool) {
	rel := pos - r.start
	for len(r.buf)-r.start <= window && r.fill() {
	}
	pos = r.start + rel
	r.lookAhead(pos)
	list := r.ahead.at[string(line)]
	for len(list) > 0 && list[0] < r.offset+int64(pos) {
		list = list[1:]
		r.ahead.count--
	}
	if r.ahead.at != nil {
		r.ahead.at[string(line)] = list
	}
	if len(list) == 0 {
		delete(r.ahead.at, string(line))
		return 0, false
	}
	i := int(list[0] - r.offset)
	return i + len(line), i-r.start <= MaxMail
}

// maxBoundary bounds a line that may end a multipart; RFC 2046 has 74 bytes.
const maxBoundary = 1000

// lookAhead notes the lines from pos on, which begins one, that may end a multipart.
func (r *Reader) lookAhead(pos int) {
	c := &r.ahead
	c.drop(r.offset + int64(r.start))
	if c.at == nil {
		c.at = make(map[string][]int64)
	}
	i := max(pos-1, int(c.to-r.offset))
	for {
		k := bytes.Index(r.buf[i:], []byte("\n--"))
		if k < 0 {
			i = max(i, len(r.buf)-2) // the last bytes may begin one
			break
		}
		i += k
		line := r.buf[i+1 : min(i+1+maxBoundary, len(r.buf))]
		end := bytes.IndexByte(line, '\n')
		if end < 0 && len(line) < maxBoundary {
			if !r.eof {
				break // there is more of it to come
			}
			end = len(line)
		}
		line = bytes.TrimRight(line[:max(end, 0)], string(blanks))
		if len(line) > 4 && bytes.HasSuffix(line, []byte("--")) && c.count < maxClosings {
			c.at[string(line)] = append(c.at[string(line)], r.offset+int64(i)+1)
			c.count++
		}
		i++
	}
	c.to = r.offset + int64(i)
}

// drop forgets the lines before an offset when there are many.
func (c *closings) drop(before int64) {
	if c.count < maxClosings/2 {
		return
	}
	for line, list := range c.at {
		n := len(list)
		for len(list) > 0 && list[0] < before {
			list = list[1:]
		}
		c.count -= n - len(list)
		if len(list) == 0 {
			delete(c.at, line)
		} else {
			c.at[line] = list
		}
	}
}
