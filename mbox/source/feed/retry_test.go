package feed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"patchbench/mbox"
)

func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broken := errors.New("broken")
		var ended time.Time
		var waits []time.Duration
		var told int
		var up []int
		err := Retry(ctx, "place", func(e Event) {
			if e.Change == Up {
				up = append(up, len(waits))
				if e.Text != "place: works again" || e.Err != nil {
					t.Errorf("event %+v", e)
				}
				return
			}
			told++
			if e.Change != Down || !errors.Is(e.Err, broken) || !strings.HasPrefix(e.Text, "place: lost, trying again in ") {
				t.Errorf("event %+v", e)
			}
		}, func(ctx context.Context, well func()) (bool, error) {
			if !ended.IsZero() {
				waits = append(waits, time.Since(ended))
			}
			n := len(waits)
			if n == 0 || n == 5 || n == 6 {
				well()
				well()
			}
			switch n {
			case 13: // lasts
				time.Sleep(2 * time.Minute)
			case 15:
				cancel()
			}
			ended = time.Now()
			return n == 11, broken
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Retry: %v", err)
		}
		if !slices.Equal(up, []int{5, 6}) { // none at the start: it was not down
			t.Errorf("works again told at attempts %v", up)
		}
		if told != 15 {
			t.Errorf("%d events, want 15", told)
		}
		want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 1, 2, 1, 2}
		if len(waits) != len(want) {
			t.Fatalf("%d waits, want %d", len(waits), len(want))
		}
		for i, w := range want {
			w *= time.Second
			if waits[i] < w*3/4 || waits[i] > w*5/4 {
				t.Errorf("wait %d was %v, want %v give or take a quarter", i, waits[i], w)
			}
		}
	})
}

func TestRetryEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := Retry(ctx, "place", nil, func(context.Context, func()) (bool, error) { return false, errors.New("x") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Retry: %v", err)
		}
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct{ size, want int }{{0, 0}, {mbox.MaxMail, mbox.MaxMail}, {mbox.MaxMail + 1, CutAt}} {
		got, cut := Cut(make([]byte, c.size))
		if len(got) != c.want || cut != (c.want != c.size) {
			t.Errorf("Cut of %d bytes gives %d, %v; want %d", c.size, len(got), cut, c.want)
		}
	}
}
