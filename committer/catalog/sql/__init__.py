"""The catalog in a SQL database, laid out as Java's JDBC catalog: SQLite, PostgreSQL, MariaDB."""
