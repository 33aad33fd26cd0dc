"""The catalog in a SQL database, laid out as Java's JDBC catalog: SQLite, PostgreSQL, MariaDB.

No other package speaks SQL or knows a driver of it.
"""
