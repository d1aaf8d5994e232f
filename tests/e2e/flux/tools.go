//go:build tools

// Package flux pins the controllers of Flux, for the end-to-end tests to build.
package flux

import (
	_ "github.com/fluxcd/helm-controller"
	_ "github.com/fluxcd/kustomize-controller"
	_ "github.com/fluxcd/source-controller"
)
