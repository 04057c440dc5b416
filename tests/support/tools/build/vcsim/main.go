// vCenter as govmomi simulates it: one host alone, and three hosts in a cluster.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/url"

	"github.com/vmware/govmomi/simulator"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	flag.Parse()
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	model.Service.Listen = &url.URL{Scheme: "http", Host: *listen}
	server := model.Service.NewServer()
	fmt.Printf("GOVC_URL=%s\n", server.URL)
	select {}
}
