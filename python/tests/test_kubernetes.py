"""The manifests of ``volery k8s`` against the schemas that Kubernetes publishes."""

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


def render(
    folder: pathlib.Path, *words: str, options: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    own = ["--work-claim", "volery", "--identity-secret", "volery", "--data-claim", "tables"]
    call = [*CALL, *own, *(options or []), "--out", str(folder / "out"), "--", *words]
    return subprocess.run(call, capture_output=True, text=True)


@pytest.fixture
def words(tmp_path: pathlib.Path) -> list[str]:
    print_ = volery.keygen(out=tmp_path / "peer")
    return [
        *("lookup", "--role", "sender", "--run", "2026-11-lift", "--workers", "16"),
        *("--gateway", "match.example.org:7443", "--peer", print_, "--input", "/data/a.parquet"),
        *("--key", "email:email", "--or", "phone:e164=DE", "--value", "segment"),
    ]


VERSIONS = ["1.31", "1.33", "1.36"]


def check(manifest: dict[str, Any]) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(manifest, version, strict=True)
        # The schema has the last word: a field with another name is refused.
        wrong = {**manifest, "spec": {**manifest["spec"], "podsSelector": {}}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, version, strict=True)


def test_jobs_are_of_the_published_schemas(tmp_path: pathlib.Path, words: list[str]) -> None:
    more = ["--namespace", "lift", "--pull-secret", "registry", "--toleration", "pool=batch:NoSchedule"]
    done = render(tmp_path, *words, options=more)
    assert done.returncode == 0, done.stderr
    names = ["0-network.json", "1-prepare.json", "2-match-00.json", "2-match-01.json", "3-collect.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [*names, "run.sh"]
    secret = "kubectl --namespace lift create secret generic volery --from-file=IDENTITY"
    assert done.stdout.splitlines() == [secret, f"sh {tmp_path}/out/run.sh"]
    for name in names:
        manifest: dict[str, Any] = json.loads((tmp_path / "out" / name).read_text())
        check(manifest)
        assert manifest["metadata"]["namespace"] == "lift"
        if name == names[0]:
            ports = [[port["port"] for port in rule["ports"]] for rule in manifest["spec"]["egress"]]
            assert ports == [[7443], [53, 53]] and manifest["spec"]["ingress"] == []
            continue
        job, pod = manifest["spec"], manifest["spec"]["template"]["spec"]
        has_identity = any(volume["name"] == "identity" for volume in pod["volumes"])
        assert has_identity == ("match" not in name)
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        # An autoscaler brings a machine first.
        assert "--wait=1800s" in container["args"]
        assert job["activeDeadlineSeconds"] == 86_400 and job["ttlSecondsAfterFinished"] == 604_800
        assert pod["tolerations"][0]["value"] == "batch" and len(pod["imagePullSecrets"]) == 1
        assert {"emptyDir": {"sizeLimit": "1Gi"}, "name": "temporary"} in pod["volumes"]
        if "match" in name:
            assert job["completions"] == job["parallelism"] == 16
            assert f"--rule={int(name[8:10])}" in container["args"]


def test_services_are_of_the_published_schemas(tmp_path: pathlib.Path, words: list[str]) -> None:
    print_ = words[words.index("--peer") + 1]
    other = volery.keygen(out=tmp_path / "other")
    for call, ports in [
        (["serve", "--listen", "0.0.0.0:7000", "--clients", "/config/clients.toml"], [7000, 9464]),
        (["gateway", "--listen", "0.0.0.0:7443", "--allow", print_, "--allow", other], [7443]),
    ]:
        done = render(tmp_path / call[0], *call, options=["--config-map", "clients"])
        assert done.returncode == 0, done.stderr
        of = {path.stem: json.loads(path.read_text()) for path in (tmp_path / call[0] / "out").iterdir()}
        for manifest in of.values():
            check(manifest)
        assert [port["port"] for port in of["service"]["spec"]["ports"]] == ports
        network = of["network"]["spec"]
        assert [port["port"] for port in network["ingress"][0]["ports"]] == ports
        assert network["egress"] == []
        (container,) = of["server"]["spec"]["template"]["spec"]["containers"]
        paths = [container.get(probe, {}).get("httpGet", {}).get("path") for probe in PROBES]
        assert paths == (["/livez", "/livez", "/readyz"] if call[0] == "serve" else [None] * 3)
        assert container["args"][0] == call[0]


PROBES = ["startupProbe", "livenessProbe", "readinessProbe"]

# Answers as kubectl does: each job is complete, but for one that fails.
KUBECTL = """#!/bin/sh
echo "$@" >> calls
case "$*" in
    *get*2-match-01*) echo FailureTarget Failed ;;
    *get*) [ "$(grep -c get calls)" -lt 2 ] || echo SuccessCriteriaMet Complete ;;
esac
"""


def test_the_script_ends_with_the_first_job_that_fails(tmp_path: pathlib.Path, words: list[str]) -> None:
    assert render(tmp_path, *words).returncode == 0
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "VOLERY_POLL": "0"}
    call = ["sh", str(tmp_path / "out" / "run.sh")]
    done = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "2-match-01.json failed" in done.stderr, done
    calls = (tmp_path / "out" / "calls").read_text().splitlines()
    applied = [call.split()[-1] for call in calls if call.startswith("apply")]
    assert applied == ["0-network.json", "1-prepare.json", "2-match-00.json", "2-match-01.json"]
    # The first job took two looks.
    assert len([call for call in calls if "get" in call]) == 4


def test_words_that_are_wrong_are_refused(tmp_path: pathlib.Path, words: list[str]) -> None:
    for wrong, message in [
        ([*words, "--frob"], "--frob"),
        (words[:-6], "--key"),
        ([word.replace("2026-11-lift", "Lift_1") for word in words], "--run"),
    ]:
        done = render(tmp_path, *wrong)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
