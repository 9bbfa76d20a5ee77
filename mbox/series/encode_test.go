package series

import (
	"bytes"
	"encoding/base64"
	"mime/quotedprintable"
	"strings"
)

func quotedPrintable(s string) string {
	var out bytes.Buffer
	w := quotedprintable.NewWriter(&out)
	w.Binary = true // or it would take the CR of a line for its end
	w.Write([]byte(s))
	w.Close()
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

func wrapBase64(s string) string {
	enc := base64.StdEncoding.EncodeToString([]byte(s))
	var out strings.Builder
	for len(enc) > 76 {
		out.WriteString(enc[:76] + "\n")
		enc = enc[76:]
	}
	return out.String() + enc
}

// flowed stuffs a blank before every line that begins with one, as RFC 3676 has
// it for a sender; no line is broken.
func flowed(s string) string {
	var out strings.Builder
	for _, line := range strings.SplitAfter(s, "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "From ") || strings.HasPrefix(line, ">") {
			line = " " + line
		}
		out.WriteString(line)
	}
	return out.String()
}
