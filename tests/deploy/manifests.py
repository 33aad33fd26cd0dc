"""Reads `deploy/kustomize` without kustomize: its files, and what they generate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
KUSTOMIZE = ROOT / "deploy/kustomize"
BASE = KUSTOMIZE / "base"
EXAMPLE = KUSTOMIZE / "overlays/example"

Manifest = dict[str, Any]


def load(path: Path) -> Manifest:
    """Load the one document of a file."""
    document = yaml.safe_load(path.read_text())
    assert isinstance(document, dict), path
    return document


def kustomizations() -> list[Path]:
    """Return the folders with a kustomization."""
    return sorted(path.parent for path in KUSTOMIZE.rglob("kustomization.yaml"))


def manifests() -> list[Path]:
    """Return the files with an object of Kubernetes, whole or as a patch."""
    return sorted(path for path in KUSTOMIZE.rglob("*.yaml") if path.name != "kustomization.yaml")


def only(kind: str, folder: Path = BASE) -> Manifest:
    """Return the folder's only object of a kind."""
    (found,) = (one for path in folder.glob("*.yaml") if (one := load(path))["kind"] == kind)
    return found


def named_files(folder: Path) -> Iterator[str]:
    """Yield every file or folder that a kustomization names, as it names it."""
    kustomization = load(folder / "kustomization.yaml")
    for key in ("resources", "components"):
        yield from kustomization.get(key, ())
    yield from (patch["path"] for patch in kustomization.get("patches", ()))
    for generator in kustomization.get("configMapGenerator", ()):
        yield from generator.get("envs", ())


def variables(*folders: Path) -> dict[str, str]:
    """Return the generated ConfigMap: each folder's `frazil.env` on top of the one before."""
    found: dict[str, str] = {}
    for folder in folders:
        for line in (folder / "frazil.env").read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.partition("=")
                found[name] = value
    return found


def pod_spec() -> Manifest:
    spec: Manifest = only("Deployment")["spec"]["template"]["spec"]
    return spec


def containers() -> list[Manifest]:
    spec = pod_spec()
    return [*spec.get("initContainers", ()), *spec["containers"]]
