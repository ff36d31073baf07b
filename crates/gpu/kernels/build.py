#!/usr/bin/env python3
"""Compiles the kernels to PTX, with the compiler of CUDA 12.0 from the package registry.

    kernels/build.py          writes kernels/volery.ptx
    kernels/build.py --check  fails unless it is what the kernels compile to
    kernels/build.py --assemble DIR  also assembles it for each generation of cards

The runtime compiler of CUDA 12.0 writes PTX that every driver from 525 on runs, and the same bytes
each time. It needs no card, no driver and no toolkit: it is one library.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

COMPILER = "nvidia-cuda-nvrtc-cu12==12.0.140"
ASSEMBLER = "nvidia-cuda-nvcc-cu12==12.0.140"
HERE = pathlib.Path(__file__).resolve().parent
PTX = HERE / "volery.ptx"
SOURCES = ["base.cuh", "trees.cuh", "check.cuh", "code.cuh"]


def installed(package, cache):
    """The folder with the files of a package."""
    folder = pathlib.Path(cache) / package
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
        subprocess.run([*command, package], check=True)
    return folder


def compiled(cache, options):
    """The PTX of all kernels."""
    folder = installed(COMPILER, cache) / "nvidia/cuda_nvrtc/lib"
    ctypes.CDLL(folder / "libnvrtc-builtins.so.12.0", mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(folder / "libnvrtc.so.12")

    def array(items):
        return (ctypes.c_char_p * len(items))(*items)

    program = ctypes.c_void_p()
    text = (HERE / "volery.cu").read_bytes()
    headers = [(HERE / name).read_bytes() for name in SOURCES]
    names = array([name.encode() for name in SOURCES])
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text, b"volery.cu", len(headers), array(headers), names
    )
    assert made == 0, f"the compiler says {made}"
    flags = array([b"--gpu-architecture=compute_80", b"--std=c++17", b"-default-device", *options])
    status = nvrtc.nvrtcCompileProgram(program, len(flags), flags)

    def result(name):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
        out = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{name}")(program, out)
        return out.value

    if log := result("ProgramLog"):
        print(log.decode(), file=sys.stderr)
    if status != 0:
        sys.exit("the kernels do not compile")
    return result("PTX")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--assemble", metavar="DIR")
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/volery-nvrtc")
    parser.add_argument("options", nargs="*", help="of the compiler, as -DNAME=VALUE")
    arguments = parser.parse_args()
    ptx = compiled(arguments.cache, [option.encode() for option in arguments.options])
    if arguments.check:
        if ptx != PTX.read_bytes():
            sys.exit(f"{PTX.name} is not what the kernels compile to: run kernels/build.py")
    else:
        PTX.write_bytes(ptx)
    if arguments.assemble:
        ptxas = installed(ASSEMBLER, arguments.cache) / "nvidia/cuda_nvcc/bin/ptxas"
        ptxas.chmod(0o755)
        for card in ["sm_80", "sm_86", "sm_89", "sm_90"]:
            out = pathlib.Path(arguments.assemble) / f"volery.{card}"
            command = [ptxas, f"-arch={card}", "-v", PTX, "-o", out]
            with open(f"{out}.log", "w") as log:
                subprocess.run(command, check=True, stderr=log)


if __name__ == "__main__":
    main()
