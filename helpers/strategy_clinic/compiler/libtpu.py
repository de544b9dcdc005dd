"""Compiles one program with the TPU compiler inside libtpu, through its C interface (PJRT), for a TPU that need not be there.

It runs as a process with a folder that holds the program and a request, and writes its answer there: the compiler ends its
process where a check in it fails, and must not end a notebook's. Besides libtpu it needs only the standard library.
"""

import ctypes as c
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

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


class CompilerError(Exception):
    """The compiler's message, after the name of its status code."""


def structure(*fields: tuple[str, Any]) -> Any:
    """Returns the type of a call's arguments, which begins with its size and a place for extensions."""
    members = [("struct_size", SIZE), ("extension", POINTER), *fields]
    return type("Arguments", (c.Structure,), {"_fields_": members})


ERROR = ("error", POINTER)
Nothing = structure()
Message = structure(ERROR, ("text", POINTER), ("size", SIZE))
Code = structure(ERROR, ("code", c.c_int))
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

    def __init__(self) -> None:
        package = importlib.util.find_spec("libtpu")
        assert package and package.origin
        library = c.CDLL(str(Path(package.origin).with_name("libtpu.so")))
        library.GetPjrtApi.restype = POINTER
        self.table: int = library.GetPjrtApi()
        self.call("PJRT_Plugin_Initialize", Nothing())

    def call(self, name: str, arguments: Any) -> Any:
        """Calls a function and returns its arguments, which it has filled in; raises CompilerError."""
        if error := self.call_plain(name, arguments, POINTER):
            raise CompilerError(self.message_of(error))
        return arguments

    def call_plain(self, name: str, arguments: Any, returns: Any) -> Any:
        arguments.struct_size = c.sizeof(arguments)
        place = self.table + HEADER + c.sizeof(POINTER) * FUNCTIONS[name]
        function = c.CFUNCTYPE(returns, POINTER)(POINTER.from_address(place).value or 0)
        return function(c.addressof(arguments))

    def message_of(self, error: int) -> str:
        message, code = Message(error=error), Code(error=error)
        self.call_plain("PJRT_Error_Message", message, None)
        self.call_plain("PJRT_Error_GetCode", code, None)
        text = c.string_at(message.text, message.size).decode(errors="replace")
        return f"{CODES.get(code.code, code.code)}: {text}"


# The options are a protocol buffer, xla.CompileOptionsProto, of which a few fields are needed. TensorFlow has no class for it.


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def compile_options(replicas: int, partitions: int, spmd: bool) -> bytes:
    """Returns the options, with devices assigned to replicas and their parts in TensorFlow's order."""
    assignment = integer(1, replicas) + integer(2, partitions)
    for part in range(partitions):
        devices = b"".join(varint(replica * partitions + part) for replica in range(replicas))
        assignment += message(3, message(1, devices))
    build = integer(1, -1) + integer(4, replicas) + integer(5, partitions) + integer(6, spmd)
    return message(3, build + message(9, assignment))


def compile_program(
    code: bytes, topology: str, replicas: int, partitions: int, spmd: bool
) -> dict[str, Any]:
    """Returns the seconds that the compilation took, and the bytes of memory that the program takes."""
    plugin, name, start = Plugin(), topology.encode(), time.perf_counter()
    made = plugin.call("PJRT_TopologyDescription_Create", Topology(name=name, size=len(name))).made
    devices = Devices(topology=made)
    plugin.call("PJRT_TopologyDescription_GetDeviceDescriptions", devices)
    if devices.count < replicas * partitions:
        raise CompilerError(
            f"{topology} has {devices.count} cores; the step is for {replicas * partitions}"
        )
    program = HloProgram(code=code, size=len(code), format=b"hlo", format_size=3)
    program.struct_size = c.sizeof(program)
    options = compile_options(replicas, partitions, spmd)
    arguments = Compile(
        topology=made, program=c.addressof(program), options=options, options_size=len(options)
    )
    executable = plugin.call("PJRT_Compile", arguments).executable
    used = plugin.call("PJRT_Executable_GetCompiledMemoryStats", Memory(executable=executable))
    seconds = time.perf_counter() - start
    amounts = {name: getattr(used, name) for name in MEMORY if getattr(used, name)}
    return {"seconds": round(seconds, 2), "memory": amounts}


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    try:
        answer = compile_program((folder / "program.hlo").read_bytes(), **request)
    except CompilerError as error:
        answer = {"refused": str(error)}
    part = folder / "answer.part"  # whoever waits for the answer must not see half of it
    part.write_text(json.dumps(answer))
    part.rename(folder / "answer.json")
    os._exit(0)  # what libtpu does at exit takes seconds, and has failed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
