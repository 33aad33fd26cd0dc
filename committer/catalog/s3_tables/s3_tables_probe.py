"""Proves on a server that is not AWS that a stale version token loses. Leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.s3_tables.s3_tables_errors import CONFLICT, explained, no_bucket
from committer.errors import SettingsError

if TYPE_CHECKING:
    from types_aiobotocore_s3tables import S3TablesClient


async def prove_token(client: S3TablesClient, bucket: str, name: str) -> None:
    """Swap a table of a namespace of this name twice with one token: the second must fail.

    Errors: `SettingsError` where it does not; `CatalogUnavailableError`; `AccessError`.
    """
    about = f"the probe `{name}`"
    with explained(client, "UpdateTableMetadataLocation", about, absent=no_bucket(bucket)):
        await client.create_namespace(tableBucketARN=bucket, namespace=[name])
        try:
            is_enforced = await _loses(client, bucket, name)
        finally:
            await client.delete_namespace(tableBucketARN=bucket, namespace=name)
    if not is_enforced:
        raise SettingsError(
            f"S3 Tables at {client.meta.endpoint_url}: this server moves a pointer although its"
            " version token is stale, so concurrent commits would be lost; expected S3 Tables of"
            " AWS, or a server that checks it"
        )


async def _loses(client: S3TablesClient, bucket: str, name: str) -> bool:
    await client.create_table(tableBucketARN=bucket, namespace=name, name=name, format="ICEBERG")
    try:
        return await _second_loses(client, bucket, name)
    finally:
        await client.delete_table(tableBucketARN=bucket, namespace=name, name=name)


async def _second_loses(client: S3TablesClient, bucket: str, name: str) -> bool:
    standing = await client.get_table_metadata_location(
        tableBucketARN=bucket, namespace=name, name=name
    )
    for number in range(2):
        try:
            await client.update_table_metadata_location(
                tableBucketARN=bucket,
                namespace=name,
                name=name,
                versionToken=standing["versionToken"],
                metadataLocation=f"{standing['warehouseLocation']}/metadata/{number}.metadata.json",
            )
        except AWS_ERRORS as error:
            if number == 1 and code_of(error) == CONFLICT:
                return True
            raise
    return False
