"""An HTTP server of an ASGI application: bounded, with deadlines, with TLS if configured."""
