// vCenter as govmomi simulates it: one host alone, and three hosts in a cluster.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	entering := flag.Duration("entering", 0, "how long a host with VMs that run takes to enter maintenance mode")
	tools := flag.Bool("tools", false, "whether the guest tools of the VMs run")
	machines := flag.Int("machines", 2, "how many VMs each pool has")
	flag.Parse()
	// The simulator switches at once, and vCenter waits until the host has no VM that runs. Meanwhile the
	// properties of the host can be read.
	simulator.TaskDelay.MethodDelay = map[string]int{
		"EnterMaintenanceMode": int(entering.Milliseconds()),
		"LockHandoff":          0,
	}
	model := simulator.VPX()
	model.Machine = *machines
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	registry := model.Map()
	if *tools {
		running := string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
		for _, each := range registry.All("VirtualMachine") {
			each.(*simulator.VirtualMachine).Guest.ToolsRunningStatus = running
		}
	}
	model.Service.Listen = &url.URL{Scheme: "http", Host: *listen}
	server := model.Service.NewServer()
	fmt.Printf("GOVC_URL=%s\n", server.URL)
	for {
		time.Sleep(50 * time.Millisecond)
		finish(registry)
	}
}

// finish ends the tasks that bring hosts into maintenance mode whose VMs are all off.
func finish(registry *simulator.Registry) {
	for _, each := range registry.All("HostSystem") {
		host := each.(*simulator.HostSystem)
		ctx := simulator.NewContext()
		ctx.Map = registry
		ctx.WithLock(host, func() {
			for _, ref := range host.RecentTask {
				task, ok := registry.Get(ref).(*simulator.Task)
				if ok && enters(&task.Task) && empty(registry, host) {
					host.Runtime.InMaintenanceMode = true
					registry.Update(ctx, task, []types.PropertyChange{
						{Name: "info.completeTime", Val: time.Now()},
						{Name: "info.state", Val: types.TaskInfoStateSuccess},
					})
				}
			}
		})
	}
}

func enters(task *mo.Task) bool {
	running := task.Info.State == types.TaskInfoStateRunning
	return running && strings.EqualFold(task.Info.DescriptionId, "HostSystem.enterMaintenanceMode")
}

func empty(registry *simulator.Registry, host *simulator.HostSystem) bool {
	for _, ref := range host.Vm {
		vm, ok := registry.Get(ref).(*simulator.VirtualMachine)
		if ok && vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
			return false
		}
	}
	return true
}
