"""The addresses of the object stores, as the driver knows them: they travel with the tasks of a
write.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.files.adls_files import AdlsAccess
from workers.files.gcs_files import GcsAccess
from workers.files.s3_files import S3Access


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """The access to each store: its address, and no secret but what a catalog has vended for the
    table, which ends soon. Without, each executor finds its own.
    """

    s3: S3Access = field(default_factory=S3Access)
    gcs: GcsAccess = field(default_factory=GcsAccess)
    adls: AdlsAccess = field(default_factory=AdlsAccess)


USUAL_ACCESS = StoreAccess()
