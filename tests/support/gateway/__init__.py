"""The common base of the gateway's tests: real gateways, and clients of each of its APIs."""
