package patch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSubject(t *testing.T) {
	for in, want := range map[string]Subject{
		"[PATCH] x":                             {Text: "x", Version: 1, Patch: true},
		"[PATCH 2/7] x: y":                      {Text: "x: y", Version: 1, Patch: true, Numbered: true, N: 2, Total: 7},
		"[PATCH v2 0/3] x":                      {Text: "x", Version: 2, HasVersion: true, Patch: true, Numbered: true, Total: 3},
		"[PATCH v6,19/24] x":                    {Text: "x", Version: 6, HasVersion: true, Patch: true, Numbered: true, N: 19, Total: 24},
		"[PATCH1/8] x":                          {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 8},
		"[v3PATCH1/8] x":                        {Text: "x", Version: 3, HasVersion: true, Patch: true, Numbered: true, N: 1, Total: 8},
		"[PATCHv4 3/9] x":                       {Text: "x", Version: 4, HasVersion: true, Patch: true, Numbered: true, N: 3, Total: 9},
		"[PATCH V2 3/9] x":                      {Text: "x", Version: 2, HasVersion: true, Patch: true, Numbered: true, N: 3, Total: 9},
		"[PATCH-v2 3/9] x":                      {Text: "x", Version: 2, HasVersion: true, Patch: true, Numbered: true, N: 3, Total: 9},
		"[PATCH 1 of 2] x":                      {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2},
		"[PATCH 01 of 12 V3 STABLE] x":          {Text: "x", Version: 3, HasVersion: true, Patch: true, Numbered: true, N: 1, Total: 12, Tags: []string{"STABLE"}},
		"[PATCH STABLE 1 of 2] x":               {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"STABLE"}},
		"[PATCH 0 of 2] x":                      {Text: "x", Version: 1, Patch: true, Numbered: true, Total: 2},
		"[PATCH v5.1 10/12] x":                  {Text: "x", Version: 5, Minor: 1, HasVersion: true, Patch: true, Numbered: true, N: 10, Total: 12},
		"[PATCH 3/2] x":                         {Text: "x", Version: 1, Patch: true, Numbered: true, N: 3, Total: 2},
		"[PATCH 3/n] x":                         {Text: "x", Version: 1, Patch: true, Numbered: true, N: 3},
		"[RFC PATCH net-next v3 1/4] x":         {Text: "x", Version: 3, HasVersion: true, Patch: true, Numbered: true, N: 1, Total: 4, Tags: []string{"RFC", "net-next"}},
		"[RFC/PATCH 1/4] x":                     {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 4, Tags: []string{"RFC"}},
		"[PATCH/RFC] x":                         {Text: "x", Version: 1, Patch: true, Tags: []string{"RFC"}},
		"[RFCv2 1/4] x":                         {Text: "x", Version: 2, HasVersion: true, Numbered: true, N: 1, Total: 4, Tags: []string{"RFC"}},
		"[PATCH RESEND 1/2] x":                  {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"RESEND"}, Resend: true},
		"[PATCH bpf-next/net] x":                {Text: "x", Version: 1, Patch: true, Tags: []string{"bpf-next/net"}},
		"[bug#60788] [PATCH v2] x":              {Text: "x", Version: 2, HasVersion: true, Patch: true, Tags: []string{"bug#60788"}},
		"[bug#60788] x":                         {Text: "[bug#60788] x", Version: 1, Tags: []string{"bug#60788"}},
		"[PATCH V4L 1/2] x":                     {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"V4L"}},
		"[PATCH v2.6.32] x":                     {Text: "x", Version: 1, Patch: true, Tags: []string{"v2.6.32"}},
		"[list] Re: [PATCH 1/2] x":              {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"list"}, Reply: true},
		"Re: Re: AW: [PATCH] x":                 {Text: "x", Version: 1, Patch: true, Reply: true},
		"Re[2]: [PATCH] x":                      {Text: "x", Version: 1, Patch: true, Reply: true},
		"(v2) [PATCH] x":                        {Text: "x", Version: 2, HasVersion: true, Patch: true},
		"[PATCH] [a-z] regex":                   {Text: "[a-z] regex", Version: 1, Patch: true},
		"[PATCH] [v2] x":                        {Text: "x", Version: 2, HasVersion: true, Patch: true},
		"[PATCH [core] 1/2] x":                  {Text: "x", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"core"}},
		"[net,v2,1/2] x":                        {Text: "x", Version: 2, HasVersion: true, Numbered: true, N: 1, Total: 2, Tags: []string{"net"}},
		"[GIT PULL] x":                          {Text: "x", Version: 1, Pull: true},
		"[PULL 03/15] x":                        {Text: "x", Version: 1, Pull: true, Numbered: true, N: 3, Total: 15},
		"[Patch]: x":                            {Text: "x", Version: 1, Patch: true},
		"[PATCH 1/2]\n x\n\ty":                  {Text: "x y", Version: 1, Patch: true, Numbered: true, N: 1, Total: 2},
		"x [PATCH] y":                           {Text: "x [PATCH] y", Version: 1},
		"PATCH: x":                              {Text: "PATCH: x", Version: 1},
		"[PATCHES] x":                           {Text: "[PATCHES] x", Version: 1, Tags: []string{"PATCHES"}},
		"[PATCH 99999999999999999999/3] x":      {Text: "x", Version: 1, Tags: []string{"99999999999999999999/3"}, Patch: true},
		"[":                                     {Text: "[", Version: 1},
		"":                                      {Version: 1},
		"[PATCH v2 1/2] Re: what":               {Text: "what", Version: 2, HasVersion: true, Patch: true, Numbered: true, N: 1, Total: 2},
		"[PATCH v3 net-next v9 1/2 2/2] two of": {Text: "two of", Version: 3, HasVersion: true, Patch: true, Numbered: true, N: 1, Total: 2, Tags: []string{"net-next"}},
	} {
		t.Run(in, func(t *testing.T) {
			if d := cmp.Diff(want, ParseSubject(in)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func FuzzParseSubject(f *testing.F) {
	for _, s := range []string{"[PATCH v2 3/7] x", "[v3PATCH1/8] x", "Re: [l] (v2) [PATCH 1 of 2 V2] [a-z] x", "[[[]]] [RFC/PATCH,v6,19/24", "[PATCH v5.1 10/n] 回复：x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s := ParseSubject(in)
		if strings.ContainsAny(s.Text, "\r\n") {
			t.Errorf("line break in %q", s.Text)
		}
		if s.N < 0 || s.Total < 0 || s.Version < 1 || s.N > maxNumber || s.Total > maxNumber {
			t.Errorf("numbers out of bounds: %+v", s)
		}
	})
}
