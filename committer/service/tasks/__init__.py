"""Helpers for asyncio tasks. Imports nothing else of the service."""
