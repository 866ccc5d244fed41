"""The client of the workers' Connect REST: sends requests of the state service and the gateway to any worker of a
cluster."""
