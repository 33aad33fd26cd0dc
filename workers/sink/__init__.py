"""The writes of a query as Spark runs them: batches, tasks, and the files of failed ones."""
