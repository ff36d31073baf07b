"""The manifests of ``volery k8s`` against the schema that Kubernetes publishes."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import kubernetes_validate
import pytest

import volery

CALL = [sys.executable, "-m", "volery", "k8s", "--image", "registry.example.org/volery"]


def render(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = ["--work-claim", "volery", "--identity-secret", "volery", "--data-claim", "tables"]
    call = [*CALL, *own, "--out", str(folder / "out"), "--", *words]
    return subprocess.run(call, capture_output=True, text=True)


@pytest.fixture
def words(tmp_path: pathlib.Path) -> list[str]:
    print_ = volery.keygen(out=tmp_path / "peer")
    return [
        *("lookup", "--role", "sender", "--run", "2026-11-lift", "--workers", "16"),
        *("--gateway", "match.example.org:7443", "--peer", print_, "--input", "/data/a.parquet"),
        *("--key", "email:email", "--or", "phone:e164=DE", "--value", "segment"),
    ]


def test_manifests_are_of_the_published_schema(tmp_path: pathlib.Path, words: list[str]) -> None:
    done = render(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    names = ["1-prepare.json", "2-match-0.json", "2-match-1.json", "3-collect.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert len(done.stdout.splitlines()) == 4
    for name in names:
        manifest: dict[str, Any] = json.loads((tmp_path / "out" / name).read_text())
        kubernetes_validate.validate(manifest, "1.33", strict=True)
        pod = manifest["spec"]["template"]["spec"]
        has_identity = any(volume["name"] == "identity" for volume in pod["volumes"])
        assert has_identity == ("match" not in name)
        if "match" in name:
            assert manifest["spec"]["completions"] == manifest["spec"]["parallelism"] == 16
            assert f"--rule={name[8]}" in pod["containers"][0]["args"]
        # The schema has the last word: a field with another name is refused.
        manifest["spec"]["backoffLimitPerIndices"] = 1
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_words_that_are_wrong_are_refused(tmp_path: pathlib.Path, words: list[str]) -> None:
    for wrong, message in [
        ([*words, "--frob"], "--frob"),
        (words[:-6], "--key"),
        ([word.replace("2026-11-lift", "Lift_1") for word in words], "--run"),
    ]:
        done = render(tmp_path, *wrong)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
