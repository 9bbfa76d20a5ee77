package letter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bot/report/cases"
	"patchbench/mbox"
)

// node is a message, or a place for one that is known by its id alone, in the
// tree by which mail readers show threads.
type node struct {
	m        *mbox.Message
	parent   *node
	children []*node
}

func (n *node) below(other *node) bool {
	for ; n != nil; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}

// threads orders messages by the rules of Jamie Zawinski's "message threading",
// steps 1 to 4, which mail readers follow.
func threads(messages []*mbox.Message) []*node {
	table := map[string]*node{}
	var order []string
	at := func(id string) *node {
		if table[id] == nil {
			table[id] = &node{}
			order = append(order, id)
		}
		return table[id]
	}
	link := func(parent, child *node) {
		if child.parent == nil && !parent.below(child) {
			child.parent = parent
			parent.children = append(parent.children, child)
		}
	}
	for _, m := range messages {
		n := at(m.ID)
		n.m = m
		refs := m.References
		if len(m.InReplyTo) > 0 && (len(refs) == 0 || refs[len(refs)-1] != m.InReplyTo[0]) {
			refs = append(refs[:len(refs):len(refs)], m.InReplyTo[0])
		}
		var before *node
		for _, ref := range refs {
			r := at(ref)
			if before != nil {
				link(before, r)
			}
			before = r
		}
		if before != nil && before != n.parent && !before.below(n) {
			if n.parent != nil { // what its own header says wins
				p := n.parent
				for i, c := range p.children {
					if c == n {
						p.children = append(p.children[:i:i], p.children[i+1:]...)
						break
					}
				}
				n.parent = nil
			}
			link(before, n)
		}
	}
	var roots []*node
	for _, id := range order {
		if table[id].parent == nil {
			roots = append(roots, table[id])
		}
	}
	return roots
}

func show(nodes []*node, depth int) string {
	var b strings.Builder
	for _, n := range nodes {
		what := "(not there)"
		if n.m != nil {
			what = n.m.Subject
		}
		b.WriteString(strings.Repeat("  ", depth) + what + "\n" + show(n.children, depth+1))
	}
	return b.String()
}

// TestThread shows a list's mail with our letter as a mail reader would.
func TestThread(t *testing.T) {
	message := func(id, subject string, refs ...string) *mbox.Message {
		head := "From: one@example.org\r\nSubject: " + subject + "\r\nMessage-ID: <" + id + ">\r\n"
		if n := len(refs); n > 0 {
			head += "In-Reply-To: <" + refs[n-1] + ">\r\nReferences: <" + strings.Join(refs, ">\r\n <") + ">\r\n"
		}
		m, err := mbox.ParseMessage([]byte(head+"\r\ntext\r\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var long []string
	for i := range 60 {
		long = append(long, fmt.Sprintf("talk.%d@example.org", i))
	}
	talk := []*mbox.Message{message(long[0], "talk 0")}
	for i := 1; i < len(long); i++ {
		talk = append(talk, message(long[i], fmt.Sprint("talk ", i), long[:i]...))
	}
	for name, c := range map[string]struct {
		list   []*mbox.Message
		answer *mbox.Message
		want   string
	}{
		"a series with a cover": {
			[]*mbox.Message{message("c@x", "[PATCH 0/2] kit"), message("1@x", "[PATCH 1/2] a", "c@x"), message("2@x", "[PATCH 2/2] b", "c@x"),
				message("r@y", "Re: [PATCH 1/2] a", "c@x", "1@x")},
			message("c@x", "[PATCH 0/2] kit"),
			"[PATCH 0/2] kit\n  [PATCH 1/2] a\n    Re: [PATCH 1/2] a\n  [PATCH 2/2] b\n  Re: [PATCH 0/2] kit\n",
		},
		"a lone patch": {[]*mbox.Message{message("1@x", "[PATCH] a")}, message("1@x", "[PATCH] a"), "[PATCH] a\n  Re: [PATCH] a\n"},
		"v2 in reply to v1": {
			[]*mbox.Message{message("c1@x", "[PATCH 0/1] kit"), message("c2@x", "[PATCH v2 0/1] kit", "c1@x"), message("21@x", "[PATCH v2 1/1] a", "c1@x", "c2@x")},
			message("c2@x", "[PATCH v2 0/1] kit", "c1@x"),
			"[PATCH 0/1] kit\n  [PATCH v2 0/1] kit\n    [PATCH v2 1/1] a\n    Re: [PATCH v2 0/1] kit\n",
		},
		"the cover is not there": {
			[]*mbox.Message{message("1@x", "[PATCH 1/2] a", "c@x"), message("2@x", "[PATCH 2/2] b", "c@x")},
			message("c@x", "[PATCH 0/2] kit"),
			"(not there)\n  [PATCH 1/2] a\n  [PATCH 2/2] b\n  Re: [PATCH 0/2] kit\n",
		},
		"a command's mail": {
			[]*mbox.Message{message("1@x", "[PATCH] a"), message("r@y", "Re: [PATCH] a", "1@x")},
			message("r@y", "Re: [PATCH] a", "1@x"),
			"[PATCH] a\n  Re: [PATCH] a\n    Re: [PATCH] a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, show(threads(append(c.list, reply(t, c.answer))), 0)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	t.Run("at the end of a long talk", func(t *testing.T) {
		letter := reply(t, talk[59])
		if n := len(letter.References); n != 21 {
			t.Errorf("%d references", n)
		}
		all := threads(append(talk, letter))
		if len(all) != 1 {
			t.Fatalf("%d threads", len(all))
		}
		n := all[0]
		for len(n.children) == 1 {
			n = n.children[0]
		}
		if n.m != letter || n.parent.m.Subject != "talk 59" {
			t.Errorf("the letter is no answer to the last mail:\n%s", show(all, 0))
		}
	})
}

// reply is the letter that answers a mail, as it is read again.
func reply(t *testing.T, m *mbox.Message) *mbox.Message {
	t.Helper()
	e := cases.All["nothing-found"]().Evaluation
	p := payload(e)
	p.Thread.MessageID, p.Thread.Subject, p.Thread.References = m.ID, m.Subject, m.References
	l, err := Compose(e, nil, p, options())
	if err != nil {
		t.Fatal(err)
	}
	read, err := mbox.ParseMessage(l.Body, "")
	if err != nil {
		t.Fatal(err)
	}
	return read
}
