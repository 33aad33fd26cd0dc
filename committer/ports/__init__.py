"""The six ports of the service, one module each, and the values that they exchange.

`tests/contract/` has one test per obligation and runs it on every adapter. An adapter takes plain
keyword arguments and knows nothing of settings, planning or the service. No adapter lives here.
"""
