"""A server's configuration and ours, as they hold together."""

from __future__ import annotations

import pytest

from committer.catalog.rest.client.rest_configuration import configuration_of, first_configuration
from committer.catalog.rest.client.rest_options import RestOptions
from committer.errors import SettingsError


def test_an_override_never_leads_out_of_tls() -> None:
    """Our credentials go to the address that it names."""
    options = RestOptions(uri="https://lake.example.com/api")
    found = configuration_of({"overrides": {"uri": "https://eu.example.com/"}}, options, {})
    assert found.base == "https://eu.example.com"
    with pytest.raises(SettingsError, match="credentials would leave TLS"):
        configuration_of({"overrides": {"uri": "http://lake.example.com/api"}}, options, {})


def test_an_address_among_the_defaults_is_not_used() -> None:
    options = RestOptions(uri="https://lake.example.com")
    found = configuration_of({"defaults": {"uri": "https://elsewhere.example.com"}}, options, {})
    assert found.base == "https://lake.example.com"


@pytest.mark.parametrize("found", [{}, {"defaults": [], "overrides": 3, "endpoints": "all"}])
def test_a_configuration_of_another_form_changes_nothing(found: dict[str, object]) -> None:
    options = RestOptions(uri="http://127.0.0.1", headers={"X-Team": "ice"})
    changed, first = configuration_of(found, options, {}), first_configuration(options)
    assert (changed.base, changed.headers, changed.paths) == (
        first.base,
        first.headers,
        first.paths,
    )
