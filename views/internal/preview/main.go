// Command preview serves one sample of every page on loopback, under a content
// security policy as strict as the console's, to look at while working on views.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/redrive-dlq/redrive/views/internal/sample"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "loopback address to serve on")
	flag.Parse()
	fmt.Println("preview: http://" + *listen)
	server := &http.Server{Addr: *listen, Handler: sample.Handler(), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
