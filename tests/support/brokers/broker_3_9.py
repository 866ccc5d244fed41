"""A Kafka 3.9 broker, which has no transaction version 2: `python -m support.brokers.broker_3_9`."""

from support.brokers.older_broker import run

if __name__ == "__main__":
    run("3_9")
