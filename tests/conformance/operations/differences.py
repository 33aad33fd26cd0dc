"""Why Frazil answers otherwise than Iceberg Java on purpose: each kind of difference with its
reason.

`expected.txt` has each difference that is expected, by its steps and both answers, below the name
of its kind. A finding that is not there is a failure, as is one that its kind does not take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.operations.case import OK, Step
from tests.conformance.operations.findings import Finding

_Takes = Callable[[Finding], bool]
_Steps = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class Difference:
    """`takes`: whether a finding is of this kind."""

    name: str
    reason: str
    takes: _Takes


def difference_of(finding: Finding) -> Difference | None:
    """Return the first entry that takes the finding; None: it is not expected."""
    if finding.java is None or finding.frazil is None:
        return None  # only one of both has made a snapshot
    return next((one for one in DIFFERENCES if one.takes(finding)), None)


def _code(java: set[str], frazil: set[str], where: _Steps = lambda _: True) -> _Takes:
    """Take an outcome for another, at steps that are so."""

    def takes(finding: Finding) -> bool:
        is_so = finding.what == "code" and finding.java in java and finding.frazil in frazil
        return is_so and where(finding)

    return takes


# --- What a step is about ------------------------------------------------------------------------


def _adds_vector(finding: Finding) -> bool:
    return finding.has_vectors and bool(finding.step.get("add-deletes"))


def _target_is_gone(finding: Finding) -> bool:
    """Whether a data file that the step deletes rows of is not live."""
    return not finding.live_before() >= _targets(finding.step)


def _targets(step: Step) -> set[str]:
    of = {one["of"] for one in step.get("add-deletes", ()) if "of" in one}
    return of.union(step.get("exist", ()))


def _deletes_beside_update(finding: Finding) -> bool:
    """Whether a step deletes rows by position delete files, and an update that did came since its
    start."""
    step = finding.step
    if finding.has_vectors or step["do"] != "row-delta" or _updates(finding):
        return False
    later = (*finding.steps_before[step.get("from", 0) :],)
    both = any(_has_positions(one) and one.get("add") for one in later)
    return both and _has_positions(step) and "level" in step


def _has_positions(step: Step) -> bool:
    return any(one["kind"] == "position" for one in step.get("add-deletes", ()))


def _named_is_gone(finding: Finding) -> bool:
    """Whether a file that the step removes by its name is not live."""
    named = {*finding.step.get("remove", ()), *finding.step.get("remove-deletes", ())}
    return not finding.live_before() >= named


def _has_no_new_data(finding: Finding) -> bool:
    """Whether all data files that are live were live at the start, too."""
    return finding.live_before() <= finding.live_at_start()


def _rewrites_newer_file(finding: Finding) -> bool:
    is_newer = not finding.live_at_start() >= set(finding.step.get("remove", ()))
    return finding.step["do"] == "rewrite" and is_newer


def _is_after(*does: str) -> _Steps:
    """Whether a step of this kind came before."""
    return lambda finding: any(one["do"] in does for one in finding.steps_before)


def _replaces_partitions_of_specs(finding: Finding) -> bool:
    """Whether files of another spec are in the partitions that a step replaces: they conflict, or
    Frazil removes what Java keeps."""
    step = finding.step
    if step["do"] != "replace-partitions" or not _is_after("change-spec")(finding):
        return False
    if finding.what == "files":
        more = set(finding.frazil) - set(finding.java)
        return {one[2] for one in more} == {"removed"}
    return _code({OK}, {"added", "deleted", "live", "partial"})(finding)


def _read_beside_its_filter(finding: Finding) -> bool:
    """Whether a step has a conflict filter beside the rows that it removes or deletes, and a
    conflict in these."""
    step = finding.step
    if step.get("conflict-filter", True) is True:
        return False
    codes = {"added", "newdel", "deleted"} if "filter" in step else {"added", "newdel", "filedel"}
    is_bare = finding.frazil == "added" and _has_no_new_data(finding)
    return _code({OK}, codes)(finding) and not is_bare


def _numbers_deletes(finding: Finding) -> bool:
    return any("number" in one for one in finding.step.get("add-deletes", ()))


def _updates(finding: Finding) -> bool:
    return bool(finding.step.get("update"))


# --- Files, manifests, row ids -------------------------------------------------------------------


def _has_united(finding: Finding) -> bool:
    if finding.what == "readable":
        return bool(finding.frazil) and finding.has_vectors
    if finding.what == "live":
        return bool("united" in finding.frazil)
    return finding.what == "files" and "united" in {one[1] for one in finding.frazil}


def _is_late_equality_delete(finding: Finding) -> bool:
    """Whether Java drops equality deletes, and nothing else differs."""
    if finding.what != "files":
        return False
    java, frazil = set(finding.java), set(finding.frazil)
    dropped = {one[1] for one in java - frazil if one[2] == "removed"}
    kept = {one[1] for one in frazil - java if one[2] == "kept"}
    return dropped == kept and len(java - frazil) == len(dropped) == len(frazil - java)


def _removes_position_deletes(finding: Finding) -> bool:
    """Whether Frazil drops delete files beside a vector that it adds, and nothing else differs."""
    if finding.what != "files" or not finding.has_vectors:
        return False
    java, frazil = set(finding.java), set(finding.frazil)
    kept, dropped = java - frazil, frazil - java
    same = {one[1] for one in kept} == {one[1] for one in dropped}
    return same and {(one[0], one[2]) for one in dropped} == {("deletes", "removed")}


def _is_grouping(finding: Finding) -> bool:
    return finding.what == "manifests" and (
        "commit.manifest.min-count-to-merge" in finding.case.properties
        or _is_after("change-spec", "rewrite-manifests")(finding)
        or finding.step["do"] == "rewrite-manifests"
    )


def _carries_dead_manifests(finding: Finding) -> bool:
    """Whether an append differs only in manifests of files that are all gone."""
    if finding.what != "manifests" or finding.step["do"] != "append":
        return False
    live = [one for one in finding.frazil[0] if one["own"] or any(one["counts"][:2])]
    return bool(live != finding.frazil[0] and live == finding.java[0])


def _are_ids_kept(finding: Finding) -> bool:
    """Whether Java takes more row ids, and the files from before have the same in both."""
    if finding.what != "row ids":
        return False
    (java, java_files), (frazil, frazil_files) = finding.java, finding.frazil
    first, next_id = 0, 2
    differing = [name for name, ids in java_files.items() if frazil_files[name] != ids]
    is_new = all(frazil_files[name] >= java[first] for name in differing)
    return bool(java[first] == frazil[first] and java[next_id] > frazil[next_id] and is_new)


def _are_ids_in_another_order(finding: Finding) -> bool:
    if finding.what != "row ids" or finding.step["do"] != "rewrite-manifests":
        return False
    (java, java_files), (frazil, frazil_files) = finding.java, finding.frazil
    given = sorted(java_files.values()), sorted(frazil_files.values())
    return bool(java == frazil and given[0] == given[1])


def _refused_for_another(finding: Finding) -> bool:
    return finding.what == "code" and (finding.java, finding.frazil) in _ANOTHER_CODE


# --- The list ------------------------------------------------------------------------------------

_IN_RANGE = {"added", "newdel", "filedel", "filepos", "deleted", "dv"}
# Java's code, and Frazil's.
_ANOTHER_CODE = {
    *(("added", "missing"), ("added", "exist"), ("added", "deleted"), ("newdel", "deleted")),
    *(("filedel", "missing"), ("filedel", "newdel"), ("filepos", "missing"), ("dv", "exist")),
    *(("missing", "exist"), ("missing", "ancestor"), ("history", "ancestor")),
    *(("incompatible", "picked"), ("incompatible", "added")),
}

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "vectors united",
        "Java refuses a second vector of a data file. Frazil unites vectors of disjoint rows, and"
        " of the same rows where all only delete.",
        _code({"dv"}, {OK}, _adds_vector),
    ),
    Difference(
        "update beside deletes of other rows",
        "Java refuses an update beside any delete file in its filter. Frazil unites vectors of"
        " disjoint rows, and lets deletes of other files be, unless the update is serializable.",
        _code({"newdel"}, {OK}, _updates),
    ),
    Difference(
        "one vector a file",
        "Java lets a second vector in where the start is later than the first, or a rewrite adds"
        " it, and no scan works any more. Frazil unites them.",
        _has_united,
    ),
    Difference(
        "target of a delete is gone",
        "Java's DELETE does not look at files that a delete has removed: its vector or position"
        " delete dangles, and a row that an update has moved survives it.",
        _code({OK}, {"exist"}, _target_is_gone),
    ),
    Difference(
        "DELETE beside an UPDATE in v2",
        "Java's DELETE under `snapshot` does not look at position deletes: a row that an update has"
        " moved survives it. Frazil refuses it if the update may have moved rows of its files.",
        _code({OK}, {"newdel"}, _deletes_beside_update),
    ),
    Difference(
        "named file is gone",
        "Java skips a named file that is not live, unless a check is asked for: rows double, or"
        " live on. Frazil refuses it always.",
        _code({OK}, {"missing"}, _named_is_gone),
    ),
    Difference(
        "start has expired",
        "Java refuses where the start has expired. Frazil decides by the head alone where it can.",
        _code({"history", "ancestor"}, {OK, "exist", "missing", *_IN_RANGE}, _is_after("expire")),
    ),
    Difference(
        "another code",
        "Both refuse, for another of several reasons: Java tells what came after the start and"
        " went again, Frazil what the head has or lacks.",
        _refused_for_another,
    ),
    Difference(
        "nothing is left of it",
        "Java refuses because of a data file that was added after the start, though a later commit"
        " has removed all such files.",
        _code({"added"}, {OK}, _has_no_new_data),
    ),
    Difference(
        "rewrite numbered back",
        "Java lets a rewrite have a sequence number below that of a file which it replaces: rows"
        " come under older equality deletes.",
        _code({OK}, {"rows"}, lambda finding: "number" in finding.step),
    ),
    Difference(
        "rewritten deletes numbered back",
        "Java lets a rewrite give delete files a sequence number below that of those which they"
        " replace: deleted rows return, or do beside a compaction.",
        _code({OK}, {"rows"}, _numbers_deletes),
    ),
    Difference(
        "narrow conflict filter",
        "Java looks for conflicts in the conflict filter alone. Frazil looks at all that is"
        " removed or updated, too: its writer has read it.",
        _read_beside_its_filter,
    ),
    Difference(
        "start was rolled back",
        "Java looks for the start of a rewrite only where it has to look for deletes, which format"
        " version 1 does not have. Frazil refuses a start that is no ancestor.",
        _code({OK}, {"ancestor"}, _is_after("roll-back", "set-current")),
    ),
    Difference(
        "rewrite of a file that is newer than the start",
        "Java takes any live file of that path. Frazil refuses it: the writer has not read it at"
        " the start, and its path may have been removed and added again.",
        _code({OK}, {"missing"}, _rewrites_newer_file),
    ),
    Difference(
        "deletes of an empty partition",
        "Java counts a delete file as content of a partition that has to be empty, though nothing"
        " is left that it deletes.",
        _code({"live"}, {OK}, lambda finding: "append-only" in finding.step),
    ),
    Difference(
        "partitions of another spec",
        "Java's replacement of partitions does not see files of another spec in them, and leaves"
        " them. Frazil removes those that lie wholly inside, and refuses if one does not.",
        _replaces_partitions_of_specs,
    ),
    Difference(
        "equality delete of a rewritten file",
        "Java drops an equality delete that a rewrite's new files, under their older sequence"
        " number, are still under: deleted rows return.",
        _is_late_equality_delete,
    ),
    Difference(
        "superseded position deletes",
        "A vector holds the rows of all earlier position deletes of its file, and readers ignore"
        " those. Java lists them on unless they are named; Frazil removes those of that file"
        " alone.",
        _removes_position_deletes,
    ),
    Difference(
        "refused as a request",
        "Java's writer throws for delete files that the format version does not have. Frazil"
        " quarantines the request.",
        _code(
            {"version"}, {"refused format_version_mismatch", "refused manifest_content_mismatch"}
        ),
    ),
    Difference(
        "grouping of manifests",
        "Java regroups manifests by spec, and merges them within a commit. Frazil merges them"
        " beside commits, and a filtered manifest stays at its place.",
        _is_grouping,
    ),
    Difference(
        "appends carry every manifest",
        "Java's plain append leaves out manifests whose files are all gone. Frazil's appends are"
        " fast appends, which carry them; a commit that removes files drops them.",
        _carries_dead_manifests,
    ),
    Difference(
        "row ids are not burnt",
        "Java gives merged and rewritten manifests row ids for rows that have some. The format"
        " allows to skip them.",
        _are_ids_kept,
    ),
    Difference(
        "manifests are clustered by partition",
        "Rewritten manifests have their files in the order of their partitions, and files from"
        " before version 3 get row ids in that order. Java's have the order of the list.",
        _are_ids_in_another_order,
    ),
)
