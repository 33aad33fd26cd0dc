"""`--catalog NAME`: a catalog of Frazil's settings or of PyIceberg's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.commands import Frazil


@pytest.fixture
def prod(frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a catalog that only PyIceberg's configuration knows."""
    file = tmp_path / "prod.db"
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    uri: sqlite:///{file}\n    warehouse: file://{tmp_path}/lake\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return file


def test_a_command_works_in_the_catalog_that_it_names(
    frazil: Frazil, prod: Path, tmp_path: Path
) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    made = frazil("--catalog", "prod", "table", "create", "db.t", "--schema", "id long")
    assert made.code == 0
    assert prod.exists()
    properties: Any = Config().get_catalog_config("prod")
    theirs = load_catalog("prod", **properties).load_table("db.t")
    assert theirs.location().startswith(f"file://{tmp_path}/lake/")
    shown = frazil("--catalog", "prod", "table", "list", "--json")
    assert [line["table"] for line in shown.lines] == ["db.t"]
    # The name counts for one call.
    assert frazil("table", "list", "--json").out == ""


@pytest.mark.usefixtures("prod")
def test_a_catalog_that_is_nowhere_configured_is_not_made(frazil: Frazil) -> None:
    refused = frazil("--catalog", "prd", "table", "list")
    assert (refused.code, refused.out) == (2, "")
    assert "no catalog of this name is configured" in refused.err
    assert "which have `prod`" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.usefixtures("prod")
def test_serve_takes_the_name_too(frazil: Frazil) -> None:
    refused = frazil("serve", "--catalog", "prd")
    assert refused.code == 2
    assert "--catalog prd" in refused.err
