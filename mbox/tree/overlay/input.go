package overlay

import "fmt"

// InputError says that what the user named cannot be used: no repository, one
// of a kind that is not read, an unknown revision. It is the user's to mend, and
// its text says how.
type InputError struct {
	text string
	err  error
}

func (e *InputError) Error() string { return e.text }

// Unwrap gives the reason beneath, nil if there is none.
func (e *InputError) Unwrap() error { return e.err }

// InputErrorf makes an *InputError as fmt.Errorf makes an error.
func InputErrorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	u, _ := err.(interface{ Unwrap() error })
	e := &InputError{text: err.Error()}
	if u != nil {
		e.err = u.Unwrap()
	}
	return e
}
