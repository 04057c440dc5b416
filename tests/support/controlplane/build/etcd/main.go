// Command etcd is the published server, as a main of our own: the module with the original one is not published.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
