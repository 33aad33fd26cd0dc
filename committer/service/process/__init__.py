"""Starts and stops the committer process: wiring, HTTP endpoints, status.

No rule about requests, tables or commits lives here.
"""
