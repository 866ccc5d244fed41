"""A worker: the connectors and tasks that its group gave it, and Connect's REST API.

Without a file: keelman worker -brokers HOST:PORT,... -group GROUP -offsets TOPIC -configs TOPIC [-cluster NAME]
[-registry URL] [-port PORT].
"""
