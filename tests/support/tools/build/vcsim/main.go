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
	entering := flag.Duration("entering", 0, "how long a host takes to enter maintenance mode")
	flag.Parse()
	// The simulator switches at once, and vCenter waits until the host has no VM that runs. Meanwhile the
	// properties of the host can be read.
	simulator.TaskDelay.MethodDelay = map[string]int{
		"EnterMaintenanceMode": int(entering.Milliseconds()),
		"LockHandoff":          0,
	}
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	model.Service.Listen = &url.URL{Scheme: "http", Host: *listen}
	server := model.Service.NewServer()
	fmt.Printf("GOVC_URL=%s\n", server.URL)
	select {}
}
