#!/usr/bin/env python3
"""Private set intersection with volery beside other Python packages, on one machine.

    peers.py install FOLDER [--volery WHEEL]     one virtual environment a package; what it downloads, takes and imports
    peers.py run FOLDER --sizes 65536x65536,1048576x1048576 --rounds 5
    peers.py trials FOLDER                       kinds of input, duplicate and empty keys, a wrong column, a peer that is gone

Each run takes both parties from a CSV file to a CSV file with the receiver's matching rows, in two processes over
loopback TCP, half of the smaller set in common, with the defaults of each package (threads too). The clock starts
when both processes have imported their packages and stops when both are done. Processor seconds are those of both
parties in that time, and of programs that they start: they depend less on what else the machine does. Rounds are interleaved: every case
once, then every case again. Bytes are counted in one more run, by a forwarder between the parties: what the sockets
carry, with the headers of the packages' own framing. openmined-psi has no transport, so this program sends its
messages, with eight bytes of length each. `run` prints one JSON object a line, medians last.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

PACKAGES = {"openmined": ["openmined-psi==2.0.6"], "spu": ["spu==0.9.5"], "volery": ["volery"]}
MODULES = {"openmined": "private_set_intersection.python", "spu": "spu.psi", "volery": "volery"}
CASES = {
    "openmined raw": "openmined",
    "openmined gcs": "openmined",
    "spu rr22": "spu",
    "spu rr22-low": "spu",
    "spu kkrt": "spu",
    "spu ecdh": "spu",
    "volery malicious": "volery",
    "volery semi-honest": "volery",
}
FIRST, SECOND = "sender", "receiver"


# --- one party, in the environment of its package ---


def openmined(kind, role, own, peer, source, out, column="id"):
    import private_set_intersection.python as psi

    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    items = [row[column] for row in rows]
    structure = {"raw": psi.DataStructure.RAW, "gcs": psi.DataStructure.GCS}[kind]
    if role == FIRST:
        with socket.create_server(("127.0.0.1", own)) as listener, listener.accept()[0] as connection:
            server = psi.server.CreateWithNewKey(True)
            request = psi.Request()
            request.ParseFromString(receive(connection))
            clients = len(request.encrypted_elements)
            send(connection, server.CreateSetupMessage(1e-9, clients, items, structure).SerializeToString())
            send(connection, server.ProcessRequest(request).SerializeToString())
        return None
    with connect(peer) as connection:
        client = psi.client.CreateWithNewKey(True)
        send(connection, client.CreateRequest(items).SerializeToString())
        setup, response = psi.ServerSetup(), psi.Response()
        setup.ParseFromString(receive(connection))
        response.ParseFromString(receive(connection))
        common = sorted(client.GetIntersection(setup, response))
    with open(out, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows[i] for i in common)
    return len(common)


def spu(kind, role, own, peer, source, out, column="id"):
    from spu import libspu, psi

    rank = 0 if role == SECOND else 1
    description = libspu.link.Desc()
    for i in range(2):
        description.add_party(str(i), f"127.0.0.1:{own if i == rank else peer}")
    link = libspu.link.create_brpc(description, rank)
    protocol, low = {
        "rr22": (psi.PsiProtocol.PROTOCOL_RR22, False),
        "rr22-low": (psi.PsiProtocol.PROTOCOL_RR22, True),
        "kkrt": (psi.PsiProtocol.PROTOCOL_KKRT, False),
        "ecdh": (psi.PsiProtocol.PROTOCOL_ECDH, False),
    }[kind]
    config = psi.PsiExecuteConfig(
        protocol_conf=psi.PsiProtocolConfig(
            protocol=protocol,
            receiver_rank=0,
            ecdh_params=psi.EcdhParams(curve=psi.EllipticCurveType.CURVE_25519),
            rr22_params=psi.Rr22Rarams(low_comm_mode=low),
        ),
        input_params=psi.InputParams(path=str(source), selected_keys=[column]),
        output_params=psi.OutputParams(path=str(out)),
    )
    report = psi.psi_execute(config, link)
    link.stop_link()
    return report.intersection_count if rank == 0 else None


def volery(kind, role, own, peer, source, out, column="id"):
    import volery

    address = {"listen": f"127.0.0.1:{own}"} if role == FIRST else {"connect": f"127.0.0.1:{peer}"}
    match = volery.psi(
        role=role, data=source, key=column, security=kind, force=True, out=out if role == SECOND else None, **address
    )
    return match.count


def send(connection, message):
    connection.sendall(len(message).to_bytes(8, "big") + message)


def receive(connection):
    def exactly(length):
        parts = []
        while length:
            parts.append(connection.recv(min(length, 1 << 20)))
            if not parts[-1]:
                raise EOFError("the other party closed the connection")
            length -= len(parts[-1])
        return b"".join(parts)

    return exactly(int.from_bytes(exactly(8), "big"))


def connect(port):
    for _ in range(3000):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise ConnectionRefusedError(f"no party listens at 127.0.0.1:{port}")


def party(case, arguments):
    """Imports, says so, waits for the word, runs."""
    library, kind = case.split()
    start = time.perf_counter()
    __import__(MODULES[library])
    imported = time.perf_counter() - start
    print(json.dumps({"import_seconds": round(imported, 3)}), flush=True)
    sys.stdin.readline()
    role, own, peer, source, out, *column = arguments
    start = processor()
    count = globals()[library](kind, role, int(own), int(peer), source, out, *column)
    print(json.dumps({"count": count, "processor_seconds": round(processor() - start, 3)}), flush=True)


def processor():
    """Seconds of this process and of the programs that it started."""
    both = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


# --- the driver ---


class Forwarder:
    """Accepts at a port of its own, carries all bytes to another, and counts them in both directions."""

    def __init__(self, target):
        self.target = target
        self.bytes = [0, 0]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = connect(self.target)
            for i, (a, b) in enumerate([(near, far), (far, near)]):
                threading.Thread(target=self.carry, args=(a, b, i), daemon=True).start()

    def carry(self, source, target, direction):
        try:
            while part := source.recv(1 << 20):
                self.bytes[direction] += len(part)
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def pair(folder, case, sources, out, count_bytes=False, columns=("id", "id"), only=None, limit=1800):
    """Both parties; seconds until both are done, bytes if asked, what each printed and its exit status."""
    library = CASES[case]
    ports = free_ports(2)
    seen = list(ports)
    forwarders = [Forwarder(p) for p in ports] if count_bytes else []
    if forwarders:
        seen = [f.port for f in forwarders]
    out.unlink(missing_ok=True)
    processes = []
    for i, role in enumerate([FIRST, SECOND]):
        if only not in (None, role):
            continue
        words = [folder / library / "bin" / "python", __file__, "party", case, role, ports[i], seen[1 - i]]
        words += [sources[i], out if role == SECOND else out.with_suffix(".sender.csv"), columns[i]]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen([str(word) for word in words], text=True, cwd=out.parent, **pipes))
    imported = [json.loads(p.stdout.readline())["import_seconds"] for p in processes]
    start = time.perf_counter()
    for p in processes:
        p.stdin.write("go\n")
        p.stdin.flush()
    ends = []
    texts = [None] * len(processes)

    def finish(i):
        try:
            texts[i] = processes[i].communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            processes[i].kill()
            texts[i] = processes[i].communicate()
        ends.append(time.perf_counter() - start)

    waiting = [threading.Thread(target=finish, args=(i,)) for i in range(len(processes))]
    for t in waiting:
        t.start()
    for t in waiting:
        t.join()
    result = {"case": case, "seconds": round(max(ends), 3), "import_seconds": max(imported)}
    result["status"] = [p.returncode for p in processes]
    result["stdout"] = [t[0] for t in texts]
    result["stderr"] = [t[1] for t in texts]
    if count_bytes:
        result["bytes"] = sum(sum(f.bytes) for f in forwarders)
        for f in forwarders:
            f.listener.close()
    return result


def tables(folder, sender, receiver):
    """Two CSV files; half of the smaller set is in both."""
    common = min(sender, receiver) // 2
    paths = []
    for name, size, first in [(FIRST, sender, 0), (SECOND, receiver, sender - common)]:
        path = folder / f"{name}-{sender}x{receiver}.csv"
        with open(path, "w") as file:
            file.write("id,amount\n")
            for i in range(size):
                # An odd multiplier permutes the numbers modulo 2^32: no two are equal.
                file.write(f"person{(first + i) * 2654435761 % 2**32:010}@example.org,{i % 997}\n")
        paths.append(path)
    return paths, common


def size(path):
    return sum(p.lstat().st_size for p in path.rglob("*") if not p.is_dir())


def install(folder, wheel):
    folder.mkdir(parents=True, exist_ok=True)
    for library, packages in PACKAGES.items():
        if library == "volery":
            if wheel is None:
                continue
            packages = [str(wheel)]
        place, wheels = folder / library, folder / (library + "-wheels")
        for path in (place, wheels):
            shutil.rmtree(path, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        pip = [place / "bin" / "python", "-m", "pip", "-q"]
        empty = size(place)
        subprocess.run([*pip, "download", "-d", wheels, *packages], check=True)
        subprocess.run([*pip, "install", "--no-compile", *packages], check=True)
        bare = size(place)
        print(json.dumps({
            "library": library,
            "download_bytes": size(wheels),
            "installed_bytes": bare - empty,
            "dependencies": len(list(wheels.iterdir())) - 1,
        }), flush=True)


def run(folder, sizes, rounds, only, once):
    """Every case once a round; a case in `once` in the first round only."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    cases = [c for c in CASES if (folder / CASES[c]).is_dir() and (only is None or c in only)]
    for sender, receiver in sizes:
        sources, common = tables(data, sender, receiver)
        results = {c: [] for c in cases}
        for attempt in range(rounds):
            for case in cases:
                if case in once and attempt:
                    continue
                result = checked(pair(folder, case, sources, data / "out.csv"), data / "out.csv", common)
                results[case].append((result["seconds"], result["processor_seconds"]))
                print(json.dumps({"sizes": [sender, receiver], "load": os.getloadavg()[0], **result}), flush=True)
        for case in cases:
            counted = checked(pair(folder, case, sources, data / "out.csv", count_bytes=True), data / "out.csv", common)
            times, work = zip(*results[case])
            print(json.dumps({
                "sizes": [sender, receiver], "median": case, "seconds": statistics.median(times),
                "range": [min(times), max(times)], "processor_seconds": statistics.median(work),
                "processor_range": [min(work), max(work)], "rounds": len(times), "bytes": counted["bytes"],
            }), flush=True)


def checked(result, out, common):
    """A result without the parties' texts, once the file has as many rows as the sets have items in common."""
    if any(result["status"]):
        sys.exit(f"{result['case']} failed:\n" + "\n".join(result["stdout"] + result["stderr"]))
    with open(out) as file:
        rows = sum(1 for _ in file) - 1
    if rows != common:
        sys.exit(f"{result['case']} gave {rows} rows instead of {common}")
    # The packages' own lines may be among the lines of standard output.
    work = [float(text) for out in result["stdout"] for text in re.findall(r'"processor_seconds": ([0-9.]+)', out)]
    result["processor_seconds"] = round(sum(work), 3)
    del result["stdout"], result["stderr"]
    return result


def trials(folder, only):
    data = (folder / "data").absolute()
    data.mkdir(exist_ok=True)
    good, duplicates, empty = data / "good.csv", data / "duplicates.csv", data / "empty.csv"
    good.write_text("id,amount\n" + "".join(f"p{i},1\n" for i in range(100)))
    duplicates.write_text("id,amount\np1,1\np1,2\np2,3\n")
    empty.write_text("id,amount\np1,1\n,2\np2,3\n")
    spaced = data / "with space.csv"
    spaced.write_text(good.read_text())
    parquet = data / "table.parquet"
    made = [folder / "volery" / "bin" / "python", "-c", "import polars, sys; "
            "polars.read_csv(sys.argv[1]).write_parquet(sys.argv[2])", good, parquet]
    if (folder / "volery").is_dir():
        subprocess.run(made, check=True)
    trial = {
        "equal": ((good, good), ("id", "id"), None),
        "duplicate keys at the receiver": ((good, duplicates), ("id", "id"), None),
        "duplicate keys at the sender": ((duplicates, good), ("id", "id"), None),
        "empty key at the receiver": ((good, empty), ("id", "id"), None),
        "wrong column at the receiver": ((good, good), ("id", "ident"), None),
        "no such file": ((good, data / "none.csv"), ("id", "id"), None),
        "space in the path": ((good, spaced), ("id", "id"), None),
        "parquet": ((good, parquet), ("id", "id"), None),
        "no peer": ((good, good), ("id", "id"), SECOND),
    }
    for case in ("openmined raw", "spu rr22", "volery malicious"):
        if not (folder / CASES[case]).is_dir() or only not in (None, CASES[case]):
            continue
        for name, (sources, columns, alone) in trial.items():
            # openmined-psi reads no files: what happens to those is this program's doing.
            if case.startswith("openmined") and not name.startswith(("equal", "duplicate", "empty")):
                continue
            result = pair(folder, case, sources, data / "out.csv", columns=columns, only=alone, limit=60)
            print(f"== {case}: {name}: {result['seconds']} s, exit status {result['status']}")
            for party, text in zip([FIRST, SECOND], map("".join, zip(result["stdout"], result["stderr"]))):
                lines = re.findall(r"^.*(?:rror|count|hint|terminate|what:).*(?:\n.*)?", text, re.MULTILINE)
                print(f"{party if alone is None else alone}: " + "\n  ".join(line[:400] for line in lines), flush=True)


def main():
    if sys.argv[1:2] == ["party"]:
        return party(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["install", "run", "trials"])
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).absolute())
    parser.add_argument("--volery", type=pathlib.Path, help="a wheel of volery")
    parser.add_argument("--sizes", default="65536x65536", help="items of the sender x items of the receiver, ..")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="these cases, or this package for trials, with commas")
    parser.add_argument("--once", default="", help="these cases in the first round only")
    options = parser.parse_args()
    if options.command == "install":
        install(options.folder, options.volery)
    elif options.command == "run":
        sizes = [tuple(map(int, text.split("x"))) for text in options.sizes.split(",")]
        only = options.only and options.only.split(",")
        run(options.folder, sizes, options.rounds, only, options.once.split(","))
    else:
        trials(options.folder, options.only)


if __name__ == "__main__":
    main()
