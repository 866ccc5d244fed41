"""What tests of the gateway share: real gateways, and clients of each of its APIs."""
