"""The credentials of a node: its agent's trust, its brokers' certificate, its workers' secrets.

Begin with `trust.py`; a broker's TLS: `broker_certificate.py`, after keelman.state.clusters.broker_tls.
"""
