"""Metrics, health and logs. Imports nothing else of the service."""
