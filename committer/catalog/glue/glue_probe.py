"""Proves on a server that is not AWS that a stale `VersionId` loses. Leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.glue.glue_errors import CONCURRENT, explained
from committer.errors import SettingsError

if TYPE_CHECKING:
    from types_aiobotocore_glue import GlueClient
    from types_aiobotocore_glue.type_defs import TableInputTypeDef


async def prove_condition(client: GlueClient, name: str) -> None:
    """Swap a table of a database of this name twice from one version: the second must fail.

    Errors: `SettingsError` where it does not; `CatalogUnavailableError`; `AccessError`.
    """
    with explained(client, "UpdateTable", f"the probe `{name}`"):
        await client.create_database(DatabaseInput={"Name": name})
        try:
            is_enforced = await _loses(client, name)
        finally:
            await client.delete_database(Name=name)  # and its table
    if not is_enforced:
        raise SettingsError(
            f"Glue at {client.meta.endpoint_url}: this server updates a table although its"
            " `VersionId` is stale, so concurrent commits would be lost; expected Glue of AWS, or"
            " a server that checks it"
        )


async def _loses(client: GlueClient, name: str) -> bool:
    table: TableInputTypeDef = {"Name": name, "Parameters": {"table_type": "frazil-probe"}}
    await client.create_table(DatabaseName=name, TableInput=table)
    answer = await client.get_table(DatabaseName=name, Name=name)
    version = answer["Table"].get("VersionId", "")
    if not version:
        return False
    await client.update_table(
        DatabaseName=name, TableInput=table, SkipArchive=True, VersionId=version
    )
    try:
        await client.update_table(
            DatabaseName=name, TableInput=table, SkipArchive=True, VersionId=version
        )
    except AWS_ERRORS as error:
        if code_of(error) == CONCURRENT:
            return True
        raise
    return False
