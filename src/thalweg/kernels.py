"""Hot loops: plain Python functions that become Numba machine code when that pays.

Importing Numba and loading compiled code takes about a second, which a short-lived Spark worker must not spend.
So a function marked ``@kernel`` stays plain Python until `compile_kernels` is called once in the process; from
then on every kernel of its group, and every call between them, is compiled code, cached on disk. Both forms give the
same answers. Kernels keep to what Numba understands: they work in place on NumPy arrays and named tuples of arrays that
their callers made, make none of their own, and return numbers.

Kernels that call each other are a group. Each package in `ALONE` is a group of its own: its kernels call no kernels of
other packages and are called by none. So a worker that joins compiles the kernels that find matches, not the planners
that run once in a while.

Other packages may mark kernels of their own, which belong to the first group. They may call kernels of this package and
of their own file, because the cache on disk watches these files.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Profile tuples a process handles in plain Python before compiling is expected to pay: at some 40 µs each this is
# less than the time that loading the compiled code takes.
COMPILE_AFTER = 20_000

ORDERING, JOINORDER, MJOIN = "ordering", "joinorder", "mjoin"  # groups, the first with all that is not in another
ALONE = JOINORDER, MJOIN

_kernels: defaultdict[str, list[Callable[..., Any]]] = defaultdict(list)
_inlined: set[Callable[..., Any]] = set()
_packages: set[str] = set()  # that hold kernels
_compiled: set[str] = set()
_handled: Counter[str] = Counter()


def kernel(function: Function) -> Function:
    """Mark a function as a hot loop that `compile_kernels` turns into machine code."""
    _packages.add(function.__module__.partition(".")[0])
    package = function.__module__.removeprefix(f"{__package__}.").partition(".")[0]
    group = package if package in ALONE else ORDERING
    if group in _compiled:  # its module was imported late
        return _jit(function, _source())  # type: ignore[no-any-return]
    _kernels[group].append(function)
    return function


def inlined(function: Function) -> Function:
    """Mark a small kernel whose code goes into its callers', so that it is made for the constants they pass."""
    _inlined.add(function)
    return kernel(function)


@kernel
def clock() -> int:
    """Nanoseconds of a monotonic clock, readable from kernels in about 25 ns."""
    return time.perf_counter_ns()


def compiled(group: str = ORDERING) -> bool:
    """Whether the kernels of a group are machine code by now."""
    return group in _compiled


def count_handled(tuples: int, group: str = ORDERING) -> None:
    """Note how many profile tuples a kernel is about to handle, and compile once that pays."""
    if group not in _compiled:
        _handled[group] += tuples
        if _handled[group] > COMPILE_AFTER:
            compile_kernels(group)


def compile_kernels(*groups: str) -> None:
    """Turn kernels into machine code, in place, for the rest of the process: the kernels of some groups, or all.

    The compiled function replaces the plain function in every module that holds it, of all packages with kernels, so
    callers, plain or compiled, need not know.
    """
    new = set(groups or (ORDERING, *ALONE)) - _compiled
    if not new:
        return
    _compiled.update(new)
    plain, source = [function for group in new for function in _kernels.pop(group, ())], _source()
    machine_code = {
        id(function): _machine_clock() if function is clock else _jit(function, source) for function in plain
    }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _packages:
            for attribute, value in list(vars(module).items()):
                if id(value) in machine_code:
                    setattr(module, attribute, machine_code[id(value)])


def _jit(function: Callable[..., Any], source: str) -> Any:
    import numba

    # Without Numba's run-time a kernel cannot make arrays, but neither does it count references to every array of
    # the named tuples that it passes on, some 5 ns each: ten times the work itself in the innermost loops.
    options: dict[str, Any] = {"_nrt": False, "forceinline": function in _inlined}
    dispatcher: Any = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    # Numba's cache asks only whether the function's own file has changed, and would go on using code into which
    # an older version of another file's kernel was compiled. Files of another version it does not even open.
    dispatcher._cache._cache_file._version = f"{numba.__version__} {source}"
    return dispatcher


def _source() -> str:
    """A digest of all files that hold kernels, which identifies their source."""
    files = (path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(b"".join(file for file in files if b"@kernel" in file)).hexdigest()


def _machine_clock() -> Any:
    """``clock_gettime(CLOCK_MONOTONIC)`` as a kernel.

    Called by its symbol in the C library rather than through ctypes, because Numba does not cache code that holds
    the address of a ctypes function.
    """
    import numba
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    helpers: Any = cgutils

    @intrinsic
    def read(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            callee = helpers.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.IntType(32), [ir.IntType(32), ir.PointerType(word)]),
                "clock_gettime",
            )
            timespec = helpers.alloca_once(builder, word, size=2)
            builder.call(callee, [ir.Constant(ir.IntType(32), time.CLOCK_MONOTONIC), timespec])
            seconds = builder.load(timespec)
            nanoseconds = builder.load(builder.gep(timespec, [ir.Constant(word, 1)]))
            return builder.add(builder.mul(seconds, ir.Constant(word, 1_000_000_000)), nanoseconds)

        return types.int64(), generate

    def clock() -> int:
        return read()  # type: ignore[call-arg]  # the typing context is Numba's own argument

    return numba.njit(nogil=True)(clock)
