"""The parts of a parameter server: leases, messages and transports. `strategies/asynchronous.py` is the server."""
