"""An HTTP server of an ASGI application: bounded, with deadlines, over TLS where asked for."""
