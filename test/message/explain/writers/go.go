// Reads a body a line, in base64, and prints what each setting of encoding/json signs: name, signature, and the bytes in base64.
//
// go.txt holds what Go 1.19 printed: `go run go.go SECRET`, fed by the bodies of bodies.ts.
package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text, _ := base64.StdEncoding.DecodeString(lines.Text())
		for _, html := range []bool{true, false} {
			for _, number := range []string{"", "UseNumber()"} {
				for _, indent := range []string{"", "  ", "    ", "\t"} {
					escapes := "a Go before 1.22"
					if !html {
						escapes = "SetEscapeHTML(false), " + escapes
					}
					decoder := json.NewDecoder(bytes.NewReader(text))
					if number != "" {
						decoder.UseNumber()
					}
					var value any
					if decoder.Decode(&value) == nil {
						report("json.Marshal of Go", value, html, indent, escapes, number)
					}
				}
			}
		}
		for _, indent := range []string{"", "  ", "    ", "\t"} {
			report("a formatter that changes white space only", json.RawMessage(text), true, indent, "escapes for HTML, as json.RawMessage of Go")
			report("a formatter that changes white space only", json.RawMessage(text), false, indent)
		}
		fmt.Println()
	}
}

func report(family string, value any, html bool, indent string, settings ...string) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(html)
	encoder.SetIndent("", indent)
	if encoder.Encode(value) != nil {
		return
	}
	body := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	set := []string{}
	for _, setting := range append(settings, map[string]string{"  ": "an indent of two spaces", "    ": "an indent of four spaces", "\t": "an indent of a tab"}[indent]) {
		if setting != "" {
			set = append(set, setting)
		}
	}
	name := family
	if len(set) > 0 {
		name += " with " + strings.Join(set, ", ")
	}
	mac := hmac.New(sha1.New, []byte(os.Args[1]))
	mac.Write(body)
	fmt.Printf("%s\t%x\t%s\n", name, mac.Sum(nil), base64.StdEncoding.EncodeToString(body))
}
