module node-maintenance-reconciler/tests/vcsim

go 1.24.0

tool github.com/vmware/govmomi/vcsim

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/vmware/govmomi v0.18.0 // indirect
)
