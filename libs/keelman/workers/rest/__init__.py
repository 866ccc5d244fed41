"""The client of the workers' Connect REST: any worker of a cluster is asked, by the state service and the gateway."""
