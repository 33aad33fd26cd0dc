"""The faults of a swap as those of the HTTP request that it is, for back ends of AWS."""

from __future__ import annotations

from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.http_proxy import Answer
from tests.support.servers.http_proxy import Fault as HttpFault

HTTP_FAULTS: dict[Fault, HttpFault | Answer] = {
    Fault.LOST_REPLY: HttpFault.CUT_ANSWER,
    Fault.REQUEST_LOST: HttpFault.CUT_REQUEST,
    Fault.LANDS_LATE: HttpFault.LANDS_LATE,
    Fault.RESENT: HttpFault.SENT_TWICE,
    Fault.UNAVAILABLE: Answer.aws_error(400, "ThrottlingException"),
}
