"""What a node must know and show: whom its agent trusts, the certificate of its brokers, the secrets of its workers."""
