"""The gateway: gRPC for every client, HTTP for Connect's clients; owns nothing, validates and forwards."""
