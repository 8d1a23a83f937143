"""The one place that knows how the installed Triton calls builtins and builds IR.

Triton 3.2 hands a builtin an ``ir.builder`` as ``_builder``; from 3.4 on it hands over a semantic
object as ``_semantic``. The primitives are written against :class:`Emitter` only, so supporting
another Triton means another emitter here and nothing else.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import triton
from triton.language import core, semantic

R = TypeVar("R")

PRIMITIVE = "__triton_dist_primitive__"
"""Attribute of every builtin that :func:`primitive` has made."""

LIBRARY = "tdist"
"""Library name of our own extern calls; the lowering recognises them by it."""


_HANDED_OVER = inspect.signature(inspect.unwrap(core.to_tensor)).parameters.keys() & {"_builder", "_semantic"}

if len(_HANDED_OVER) != 1:
    raise ImportError(
        "triton_dist.language needs a Triton whose builtins take `_builder` (triton-ascend 3.2) or `_semantic` (from "
        f"3.4 on); those of triton {triton.__version__} take neither: install triton-ascend==3.2.*"
    )


class Emitter:
    """Builds the IR of one primitive call, under Triton 3.2.

    Attributes:
        builder: Triton's ``ir.builder``, placed where the call stands in the kernel.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def extern(
        self,
        symbol: str,
        operands: Sequence[core.tensor],
        result: core.dtype,
        *,
        pure: bool = False,
        library: str = LIBRARY,
        path: str = "",
    ) -> core.tensor:
        """Call ``symbol`` on scalars; returns its scalar result."""
        handle = self.builder.create_extern_elementwise(
            library, path, symbol, [o.handle for o in operands], result.to_ir(self.builder), pure
        )
        return core.tensor(handle, result)

    def integer(self, value: int, type_: core.dtype) -> core.tensor:
        """A constant of 32 or 64 bits; values above the signed range keep their bits."""
        bits = type_.int_bitwidth
        signed = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        get = self.builder.get_int32 if bits == 32 else self.builder.get_int64
        return core.tensor(get(signed), type_)

    def tensor(self, value: Any) -> core.tensor:
        """A Python number, a constexpr or a tensor, as a tensor."""
        return semantic.to_tensor(value, self.builder)

    def cast(self, value: core.tensor, type_: core.dtype) -> core.tensor:
        """``value`` converted element by element to the scalar type ``type_``."""
        return semantic.cast(value, type_, self.builder)

    def address(self, pointer: core.tensor) -> core.tensor:
        """The address of a scalar pointer, in bytes, as int64."""
        handle = self.builder.create_ptr_to_int(pointer.handle, core.int64.to_ir(self.builder))
        return core.tensor(handle, core.int64)

    def like(self, scalar: core.tensor, model: core.tensor) -> core.tensor:
        """``scalar`` repeated to the shape of ``model``."""
        if not model.type.is_block():
            return scalar
        shape = model.type.get_block_shapes()
        handle = self.builder.create_splat(scalar.handle, shape)
        return core.tensor(handle, core.block_type(scalar.type, shape))

    def offset(self, pointer: core.tensor, elements: core.tensor) -> core.tensor:
        """``pointer`` moved by ``elements`` elements; both scalar or of one shape."""
        handle = self.builder.create_addptr(pointer.handle, elements.handle)
        return core.tensor(handle, pointer.type)

    def advance(self, block_pointer: core.tensor, elements: core.tensor) -> core.tensor:
        """A block pointer moved by ``elements`` (int32) in each of its dimensions."""
        dimensions = len(block_pointer.type.element_ty.shape)
        handle = self.builder.create_advance(block_pointer.handle, [elements.handle] * dimensions)
        return core.tensor(handle, block_pointer.type)

    def binary(self, operation: str, lhs: core.tensor, rhs: core.tensor) -> core.tensor:
        """``create_<operation>`` of two values of one type."""
        handle = getattr(self.builder, f"create_{operation}")(lhs.handle, rhs.handle)
        return core.tensor(handle, lhs.type)

    @property
    def target(self) -> str | None:
        """The SoC that the compiling backend named in its codegen functions, if it did."""
        soc = self.builder.codegen_fns.get("triton_dist_soc")
        return soc if isinstance(soc, str) else None


class SemanticEmitter(Emitter):
    """The same from Triton 3.4 on, where the functions of `triton.language.semantic` are methods.

    Attributes:
        semantic: Triton's ``TritonSemantic`` with the builder.
    """

    def __init__(self, semantic: Any) -> None:
        super().__init__(semantic.builder)
        self.semantic = semantic

    def tensor(self, value: Any) -> core.tensor:
        """A Python number, a constexpr or a tensor, as a tensor."""
        return self.semantic.to_tensor(value)

    def cast(self, value: core.tensor, type_: core.dtype) -> core.tensor:
        """``value`` converted element by element to the scalar type ``type_``."""
        return self.semantic.cast(value, type_)


_interpreter: Any = None


def interpret_with(builder: Any) -> None:
    """From now on, calls without a builder get this one, an interpreter's, while it runs a kernel (`is_running`)."""
    global _interpreter
    _interpreter = builder


def interpreter_builder() -> Any:
    """The builder of the interpreter that runs a kernel on this thread; None when there is none."""
    return _interpreter if _interpreter is not None and _interpreter.is_running else None


def interpretable(builtin: Callable[..., R]) -> Callable[..., R]:
    """`builtin`, one of Triton's, for a module where Triton's interpreter, unlike its compiler, does not look for it.

    Anything else, such as a function with `@triton.jit`, is returned as it is.
    """
    if not core.is_builtin(builtin):
        return builtin

    @functools.wraps(builtin)
    def call(*args: Any, _builder: Any = None, **kwargs: Any) -> R:
        if _builder is None and (builder := interpreter_builder()) is not None:
            args = tuple(_as_compiled(arg) for arg in args)
            kwargs = {name: _as_compiled(arg) for name, arg in kwargs.items()}
            return builtin(*args, _builder=builder, **kwargs)
        return builtin(*args, _builder=_builder, **kwargs)

    return call


def _as_compiled(value: Any) -> Any:
    """An argument as Triton's compiler would pass it: a constant is a constexpr."""
    if isinstance(value, (list, tuple)):
        return type(value)(_as_compiled(item) for item in value)
    return core.constexpr(value) if isinstance(value, (bool, int, float, str)) else value


def primitive(function: Callable[..., R]) -> Callable[..., R]:
    """Make ``function(emitter, *args)`` a builtin that kernels call as ``function(*args)``.

    Calling the builtin outside of a kernel raises RuntimeError.
    """
    builtin = _taking_builder(function) if "_builder" in _HANDED_OVER else _taking_semantic(function)
    setattr(builtin, core.TRITON_BUILTIN, True)
    setattr(builtin, PRIMITIVE, True)
    return builtin


def _taking_builder(function: Callable[..., R]) -> Callable[..., R]:
    @functools.wraps(function)
    def builtin(*args: Any, _builder: Any = None, **kwargs: Any) -> R:
        builder = _builder or interpreter_builder()
        if builder is None:
            raise _outside_of_kernels(function)
        return function(Emitter(builder), *args, **kwargs)

    builtin.__signature__ = inspect.signature(function).replace(parameters=_visible(function))  # type: ignore[attr-defined]
    return builtin


def _taking_semantic(function: Callable[..., R]) -> Callable[..., R]:
    @functools.wraps(function)
    def builtin(*args: Any, _semantic: Any = None, **kwargs: Any) -> R:
        if not hasattr(_semantic, "builder"):
            raise _outside_of_kernels(function)
        return function(SemanticEmitter(_semantic), *args, **kwargs)

    visible = _visible(function)
    if any(parameter.name == "_semantic" for parameter in visible):
        # The name is the kernel's to use here, so the call must not be handed anything under it.
        _implement_calls(builtin, function)
    else:
        visible.append(inspect.Parameter("_semantic", inspect.Parameter.KEYWORD_ONLY, default=None))
    builtin.__signature__ = inspect.signature(function).replace(parameters=visible)  # type: ignore[attr-defined]
    return builtin


def _implement_calls(builtin: Callable[..., R], function: Callable[..., R]) -> None:
    """Have the code generator leave calls of `builtin` to us: it hands over itself and the call's syntax tree."""
    from triton.compiler.code_generator import CodeGenerator

    def call(generator: Any, node: ast.Call) -> R:
        kwargs = dict(generator.visit(keyword) for keyword in node.keywords)
        args: list[Any] = []
        for arg in node.args:
            value = generator.visit(arg)
            args += value if isinstance(value, list) else [value]  # a starred argument is a list
        return function(SemanticEmitter(generator.semantic), *args, **kwargs)

    CodeGenerator.statically_implemented_functions[builtin] = call


def _visible(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a kernel sees: all but the emitter."""
    return list(inspect.signature(function).parameters.values())[1:]


def _outside_of_kernels(function: Callable[..., Any]) -> RuntimeError:
    return RuntimeError(
        f"{function.__name__} works in kernels only: call it from a function with @triton.jit, and launch that"
    )
