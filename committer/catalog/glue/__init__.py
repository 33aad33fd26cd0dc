"""A catalog in the AWS Glue Data Catalog, in the layout of Iceberg Java's GlueCatalog.

`glue_catalog.py` is the adapter, `glue_layout.py` what a table is in Glue, `glue_columns.py` its
columns, `glue_errors.py` what Glue's errors mean, `glue_probe.py` the proof of the condition. Its
AWS client is made in `committer.aws`, not here.
"""
