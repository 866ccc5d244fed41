"""The only user of grpc: servers, channels, errors on the wire, pages."""

from keelman.runtime import grpc_forks

grpc_forks.keep_out()
