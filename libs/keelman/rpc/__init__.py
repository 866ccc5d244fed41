"""The only user of grpc: servers, channels, errors on the wire, pages."""
