"""Checks that the data files that a request adds exist, before the request is judged once more.

Nothing but the request names them while it is in quarantine, so the orphan clean-up of an engine
takes them after some days. A commit looks only where that is set (`security.check_unsigned_files`).
"""

from __future__ import annotations

import asyncio

from committer.plan.cleanup.orphan_search import data_files_of, manifests_named_by
from committer.ports.storage import Storage
from committer.request.request_format import EncodedRequest
from committer.service.tasks.file_lookup import first_absent


async def absent_data_file(storage: Storage, sealed: EncodedRequest) -> str | None:
    """Return a data file that does not exist; None if all do.

    Errors: `FrazilError` where that cannot be found out.
    """
    named = [await storage.get(location) for location in manifests_named_by(sealed.request)]
    paths = await asyncio.to_thread(lambda: list(data_files_of(sealed, named)))
    return await first_absent(storage, paths)
