"""The TPU compiler inside libtpu, called through its C interface (PJRT): it compiles for a TPU that need not be there.

Run as a process of its own, with a folder that holds the program and a request, and answers there: the compiler ends its
process where a check of its own fails, and must not end a notebook's. The standard library is all it needs besides libtpu.
"""

import ctypes as c
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

# Places in the table of functions, which only ever grows: xla/pjrt/c/pjrt_c_api.h.
FUNCTIONS = {
    "PJRT_Error_Message": 1,
    "PJRT_Error_GetCode": 2,
    "PJRT_Plugin_Initialize": 3,
    "PJRT_TopologyDescription_Create": 82,
    "PJRT_TopologyDescription_GetDeviceDescriptions": 86,
    "PJRT_Compile": 89,
    "PJRT_Executable_GetCompiledMemoryStats": 96,
}
HEADER = 40  # bytes before that table
CODES = {
    3: "INVALID_ARGUMENT",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
}
DEVICE = ["generated_code", "argument", "output", "alias", "temp"]
MEMORY = [*DEVICE, *[f"host_{name}" for name in DEVICE], "peak", "total"]
POINTER, SIZE = c.c_void_p, c.c_size_t


class CompilerRefused(Exception):
    """What the compiler said, after the name of its status code."""


def structure(*fields):
    """The arguments of one call; each such structure begins with its size and a place for extensions."""
    members = [("struct_size", SIZE), ("extension", POINTER), *fields]
    return type("Arguments", (c.Structure,), {"_fields_": members})


FAILURE = ("error", POINTER)
Nothing = structure()
Message = structure(FAILURE, ("text", POINTER), ("size", SIZE))
Code = structure(FAILURE, ("code", c.c_int))
Topology = structure(
    ("name", c.c_char_p), ("size", SIZE), ("options", POINTER), ("count", SIZE), ("made", POINTER)
)
Devices = structure(("topology", POINTER), ("listed", POINTER), ("count", SIZE))
HloProgram = structure(
    ("code", c.c_char_p), ("size", SIZE), ("format", c.c_char_p), ("format_size", SIZE)
)
Compile = structure(
    ("topology", POINTER),
    ("program", POINTER),
    ("options", c.c_char_p),
    ("options_size", SIZE),
    ("client", POINTER),
    ("executable", POINTER),
)
Memory = structure(("executable", POINTER), *[(name, c.c_int64) for name in MEMORY])


class Plugin:
    """libtpu's table of functions."""

    def __init__(self):
        library = c.CDLL(str(libtpu()))
        library.GetPjrtApi.restype = POINTER
        self.table = library.GetPjrtApi()
        self.call("PJRT_Plugin_Initialize", Nothing())

    def function(self, name: str, returns):
        place = self.table + HEADER + c.sizeof(POINTER) * FUNCTIONS[name]
        return c.CFUNCTYPE(returns, POINTER)(POINTER.from_address(place).value)

    def call(self, name: str, arguments):
        arguments.struct_size = c.sizeof(arguments)
        error = self.function(name, POINTER)(c.addressof(arguments))
        if error:
            raise CompilerRefused(self.told(error))
        return arguments

    def told(self, error) -> str:
        """Status and text of an error; these two functions return nothing themselves."""
        message, code = Message(error=error), Code(error=error)
        for name, arguments in [("PJRT_Error_Message", message), ("PJRT_Error_GetCode", code)]:
            arguments.struct_size = c.sizeof(arguments)
            self.function(name, None)(c.addressof(arguments))
        text = c.string_at(message.text, message.size).decode(errors="replace")
        return f"{CODES.get(code.code, code.code)}: {text}"


def libtpu() -> Path:
    return Path(importlib.util.find_spec("libtpu").origin).with_name("libtpu.so")


# The options are a protocol buffer, xla.CompileOptionsProto, of which a few fields are needed.


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + number(rest) if rest else bytes([low])


def whole(field: int, value: int) -> bytes:
    return number(field << 3) + number(value)


def nested(field: int, content: bytes) -> bytes:
    return number(field << 3 | 2) + number(len(content)) + content


def compile_options(replicas: int, partitions: int, spmd: bool) -> bytes:
    """Which device runs which replica's part, counted through as TensorFlow counts them."""
    places = [
        b"".join(number(replica * partitions + part) for replica in range(replicas))
        for part in range(partitions)
    ]
    assignment = whole(1, replicas) + whole(2, partitions)
    assignment += b"".join(nested(3, nested(1, each)) for each in places)
    build = whole(1, -1) + whole(4, replicas) + whole(5, partitions) + whole(6, spmd)
    return nested(3, build + nested(9, assignment))


def compile_program(code: bytes, topology: str, replicas: int, partitions: int, spmd: bool) -> dict:
    plugin = Plugin()
    name, start = topology.encode(), time.perf_counter()
    made = plugin.call("PJRT_TopologyDescription_Create", Topology(name=name, size=len(name))).made
    found = plugin.call(
        "PJRT_TopologyDescription_GetDeviceDescriptions", Devices(topology=made)
    ).count
    if found < replicas * partitions:
        raise CompilerRefused(
            f"{topology} has {found} cores; the step is for {replicas * partitions}"
        )
    program = HloProgram(code=code, size=len(code), format=b"hlo", format_size=3)
    program.struct_size = c.sizeof(program)
    chosen = compile_options(replicas, partitions, spmd)
    arguments = Compile(
        topology=made, program=c.addressof(program), options=chosen, options_size=len(chosen)
    )
    executable = plugin.call("PJRT_Compile", arguments).executable
    used = plugin.call("PJRT_Executable_GetCompiledMemoryStats", Memory(executable=executable))
    seconds = time.perf_counter() - start
    amounts = {name: getattr(used, name) for name in MEMORY if getattr(used, name)}
    return {"seconds": round(seconds, 2), "memory": amounts}


def main(folder: Path):
    request = json.loads((folder / "request.json").read_text())
    try:
        answer = compile_program((folder / "program.hlo").read_bytes(), **request)
    except CompilerRefused as reason:
        answer = {"refused": str(reason)}
    part = folder / "answer.part"  # whoever waits for the answer must not see half of it
    part.write_text(json.dumps(answer))
    part.rename(folder / "answer.json")
    os._exit(0)  # what libtpu does on leaving takes seconds and has been seen to fail


if __name__ == "__main__":
    main(Path(sys.argv[1]))
