// Command etcd is the etcd server: its own main package lies in a module that replaces its dependencies by paths.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
