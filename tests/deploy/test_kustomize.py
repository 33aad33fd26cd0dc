"""The Kubernetes manifests: valid, complete, safe, and about the settings that there are."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from committer.service.process import http
from committer.settings.service_settings import Settings, load_settings
from frazil.compaction import parser
from tests.deploy.manifests import (
    BASE,
    EXAMPLE,
    ROOT,
    Manifest,
    containers,
    kustomizations,
    load,
    manifests,
    named_files,
    only,
    pod_spec,
    variables,
)

# The oldest that we say works (docs/how-to/run-on-kubernetes.md), and the newest known here.
RELEASES = ("1.27", kubernetes_validate.latest_version())
# Objects of operators, which Kubernetes has no schema for.
FOREIGN_KINDS = {"PodMonitor"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "deploy/kustomize"))


# --- Valid and complete --------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("path", manifests(), ids=name_of)
def test_a_manifest_is_valid(path: Path, release: str) -> None:
    manifest = load(path)
    if manifest["kind"] in FOREIGN_KINDS:
        assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
        return
    kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
def test_a_misspelt_field_would_be_found(release: str) -> None:
    manifest = only("Deployment")
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSecond"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("folder", kustomizations(), ids=name_of)
def test_a_kustomization_names_each_file_beside_it_and_no_other(folder: Path) -> None:
    named = list(named_files(folder))
    assert [name for name in named if not (folder / name).exists()] == []
    beside = {path.name for path in folder.iterdir()} - {"kustomization.yaml"}
    assert beside == {name for name in named if "/" not in name}


@pytest.mark.thorough
def test_kustomize_builds_the_example_with_what_its_base_says() -> None:
    command = kustomize()
    if command is None:
        pytest.skip("neither kustomize nor kubectl is here: the example was not built")
    built = subprocess.run(
        [*command, str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=60
    )
    objects = {one["kind"]: one for one in yaml.safe_load_all(built.stdout)}
    for release in RELEASES:
        for kind in set(objects) - FOREIGN_KINDS:
            kubernetes_validate.validate(objects[kind], release, strict=True)
    assert objects["ConfigMap"]["data"] == variables(BASE, EXAMPLE)
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    name = objects["ConfigMap"]["metadata"]["name"]
    assert container["envFrom"] == [{"configMapRef": {"name": name}}]
    assert "role-arn" in str(objects["ServiceAccount"]["metadata"]["annotations"])


def kustomize() -> list[str] | None:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


def test_what_belongs_together_has_the_same_labels() -> None:
    labels = only("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert only("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert only("Service")["spec"]["selector"] == labels
    assert only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert only("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    monitor = only("PodMonitor", BASE.parent / "components/pod-monitor")
    assert monitor["spec"]["selector"]["matchLabels"] == labels
    assert pod_spec()["serviceAccountName"] == only("ServiceAccount")["metadata"]["name"]


def test_the_image_is_of_this_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert [one["image"] for one in containers()] == [f"frazil:{version}"]
    (image,) = load(EXAMPLE / "kustomization.yaml")["images"]
    assert (image["name"], image["newTag"]) == ("frazil", version)


# --- Safe ----------------------------------------------------------------------------------------


def test_a_pod_runs_as_nobody_and_writes_nowhere() -> None:
    pod = pod_spec()["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] >= 10_000
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers():
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["runAsNonRoot"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod_spec()["automountServiceAccountToken"] is False
    assert pod_spec()["enableServiceLinks"] is False
    for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
        assert not pod_spec().get(forbidden)


def test_a_pod_runs_as_the_user_whose_home_the_image_makes() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.M)
    pod = pod_spec()["securityContext"]
    wanted = {int(one) for one in user}
    assert {pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]} == wanted


def test_every_container_has_limits_and_probes_of_paths_that_are_served() -> None:
    for container in containers():
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert container["resources"]["limits"].keys() >= {"memory", "ephemeral-storage"}
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            assert asked["path"] in served_paths()
            assert ports[asked["port"]] == int(variables(BASE)["FRAZIL_SERVICE__HTTP_PORT"])


def served_paths() -> list[str]:
    return re.findall(r'web\.get\("(/\w+)"', inspect.getsource(http))


def test_metrics_are_taken_from_a_port_that_the_policy_opens_and_nothing_else_is_open() -> None:
    (port,) = containers()[0]["ports"]
    (opened,) = only("NetworkPolicy")["spec"]["ingress"]
    assert [one["port"] for one in opened["ports"]] == [port["name"]]
    assert opened["from"]
    (published,) = only("Service")["spec"]["ports"]
    assert (published["port"], published["targetPort"]) == (port["containerPort"], port["name"])
    monitor = only("PodMonitor", BASE.parent / "components/pod-monitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"]
    assert endpoint["path"] in served_paths()


def test_a_pod_reaches_names_the_queue_https_and_the_status_of_its_like_only() -> None:
    policy = only("NetworkPolicy")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    like_it = {"podSelector": policy["podSelector"]}
    (asked,) = [rule for rule in policy["egress"] if like_it in rule["to"]]
    assert (asked["to"], [one["port"] for one in asked["ports"]]) == ([like_it], ["http"])
    assert like_it in policy["ingress"][0]["from"]
    reached = {
        (port["port"], peer["ipBlock"]["cidr"] if "ipBlock" in peer else "kube-system")
        for rule in policy["egress"]
        if rule is not asked
        for port in rule["ports"]
        for peer in rule["to"]
    }
    assert {port for port, peer in reached if peer in ("0.0.0.0/0", "::/0")} == {443}
    assert {port for port, _ in reached} == {53, 6379, 6380, 443}


def test_a_committer_names_its_pods_address_for_its_status() -> None:
    names = {one["name"]: one for one in containers()[0]["env"]}
    assert names["POD_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    port = variables(BASE)["FRAZIL_SERVICE__HTTP_PORT"]
    assert names["FRAZIL_SERVICE__STATUS_URL"]["value"] == f"http://$(POD_IP):{port}"


def test_nothing_is_cut_off_in_its_drain() -> None:
    settings = settings_of(variables(BASE))
    assert pod_spec()["terminationGracePeriodSeconds"] >= settings.service.drain_timeout_s + 10


def test_a_new_committer_is_ready_before_the_old_one_goes() -> None:
    rolling = only("Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_node_can_be_drained() -> None:
    budget = only("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert "minAvailable" not in budget
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_whatever_may_be_written_to_is_a_volume_and_every_volume_is_mounted() -> None:
    pod = pod_spec()
    mounted = {one["name"]: one["mountPath"] for one in containers()[0]["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    image = (ROOT / "Dockerfile").read_text()
    (home,) = re.findall(r"FRAZIL_HOME=(\S+)", image)
    assert {home, "/tmp"} <= set(mounted.values())
    for volume in pod["volumes"]:
        assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"]


# --- Compaction ----------------------------------------------------------------------------------


def compaction() -> Manifest:
    job = only("CronJob", BASE.parent / "components/compaction")["spec"]
    pod: Manifest = job["jobTemplate"]["spec"]["template"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid" and pod["restartPolicy"] == "Never"
    return pod


def test_a_compaction_is_called_as_its_program_is_and_ends() -> None:
    (container,) = compaction()["containers"]
    assert container["command"] == ["python", "-m", "frazil.compaction"]
    given = parser().parse_args(container["args"])
    assert given.table == ["db.events"] and given.rounds == 1


def test_a_compaction_is_as_safe_as_the_committer_and_finds_what_that_finds() -> None:
    pod, (container,) = compaction(), compaction()["containers"]
    assert pod["securityContext"] == pod_spec()["securityContext"]
    assert container["securityContext"] == containers()[0]["securityContext"]
    for same in ("serviceAccountName", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod[same] == pod_spec()[same]
    assert container["envFrom"] == containers()[0]["envFrom"]
    assert container["volumeMounts"] == containers()[0]["volumeMounts"]
    assert [one["name"] for one in pod["volumes"]] == [one["name"] for one in pod_spec()["volumes"]]
    assert container["resources"]["limits"].keys() >= {"memory", "ephemeral-storage"}


# --- Settings ------------------------------------------------------------------------------------


def settings_of(found: dict[str, str], tmp_path: Path | None = None) -> Settings:
    """Load the settings as the container would, with the secret in a file of the test."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.items():
            patch.setenv(name, value)
        patch.delenv("FRAZIL_QUEUE__URL_FILE", raising=False)
        patch.setenv("FRAZIL_HOME", "/var/lib/frazil")
        return load_settings()


@pytest.mark.parametrize("folders", [(BASE,), (BASE, EXAMPLE)], ids=["base", "example"])
def test_every_variable_is_a_setting(folders: tuple[Path, ...]) -> None:
    found = variables(*folders)
    for one in containers():
        for variable in one["env"]:
            found[variable["name"]] = "a-name"
    settings = settings_of(found)
    known = {"FRAZIL_INBOX", "FRAZIL_HOME", "POD_IP"}
    for group in Settings.model_fields:
        fields = getattr(type(getattr(settings, group)), "model_fields", ())
        known |= {f"FRAZIL_{group}__{name}".upper() for name in fields}
    names = {name.removesuffix("_FILE") for name in found}
    assert {name for name in names if not name.startswith("AWS_")} <= known


def test_secrets_come_as_files_of_the_mounted_secret() -> None:
    (mount,) = (one for one in containers()[0]["volumeMounts"] if one["name"] == "secrets")
    path = variables(BASE)["FRAZIL_QUEUE__URL_FILE"]
    assert Path(path).parent == Path(mount["mountPath"])
    (volume,) = (one for one in pod_spec()["volumes"] if one["name"] == "secrets")
    assert Path(path).name in (BASE / "deployment.yaml").read_text()
    assert volume["secret"]["defaultMode"] == 0o440
    assert not any("redis" in value for value in variables(BASE, EXAMPLE).values())


def test_the_base_names_no_bucket_and_the_example_every_one() -> None:
    unset = {name for name, value in variables(BASE).items() if "YOUR_" in value}
    assert unset == {"FRAZIL_INBOX", "FRAZIL_CATALOG__WAREHOUSE"}
    assert not any("YOUR_" in value for value in variables(BASE, EXAMPLE).values())
