//go:build tools

// Package controlplane pins the programs of a Kubernetes control plane, for the end-to-end tests to build.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
