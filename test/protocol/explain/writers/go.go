// Reads a body a line, in base64, and prints what encoding/json signs, with and without escapes for HTML: name, signature, and the
// bytes in base64.
//
// go.txt holds what Go 1.19 printed: `go run go.go SECRET`, fed by the bodies of bodies.ts. Go writes \b and \f so since 1.22.
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
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text, _ := base64.StdEncoding.DecodeString(lines.Text())
		for _, html := range []bool{true, false} {
			var value any
			var out bytes.Buffer
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(html)
			if json.Unmarshal(text, &value) != nil || encoder.Encode(value) != nil {
				continue
			}
			body := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
			name := "json.Marshal of Go"
			if !html {
				name += " with SetEscapeHTML(false)"
			}
			mac := hmac.New(sha1.New, []byte(os.Args[1]))
			mac.Write(body)
			fmt.Printf("%s\t%x\t%s\n", name, mac.Sum(nil), base64.StdEncoding.EncodeToString(body))
		}
		fmt.Println()
	}
}
