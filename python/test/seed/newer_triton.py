"""Makes the installed Triton 3.2 call builtins as Triton from 3.4 on does: a stand-in for one that is not there.

What differs at the border to a front end outside of Triton, and is imitated:

- a builtin is handed `_semantic`, an object with the builder, `to_tensor(x)` and `cast(x, type)`, and no `_builder`;
- from 3.4 on always, in later releases only where its signature has a parameter of that name;
- `tl.to_tensor` itself takes `_semantic`.

Triton's own builtins are still those of 3.2, so these keep getting their `_builder`.
"""

# The stand-in is of the kind of what it stands for: without types.
# mypy: ignore-errors

from __future__ import annotations

import inspect

from triton.compiler import code_generator
from triton.compiler.errors import CompilationError
from triton.language import core, semantic
from triton.runtime.jit import JITFunction

ALWAYS = "always"
IF_NAMED = "if-named"


class TritonSemantic:
    """As `triton.language.semantic.TritonSemantic`: the functions of the module, bound to a builder."""

    def __init__(self, builder) -> None:
        self.builder = builder

    def to_tensor(self, value):
        """A tensor of a number, a constexpr or a tensor."""
        return semantic.to_tensor(value, self.builder)

    def cast(self, value, type_):
        """`value` in another scalar type."""
        return semantic.cast(value, type_, self.builder)


def install(handing_over: str) -> None:
    """Imitate a release; to be called before triton_dist.language is imported."""
    generator = code_generator.CodeGenerator
    generator.semantic = property(lambda self: TritonSemantic(self.builder))
    generator.visit_Call = _visit_call(generator.visit_Call, handing_over)
    own = core.to_tensor

    def to_tensor(x, _semantic=None):
        return own(x, _builder=_semantic.builder)

    setattr(to_tensor, core.TRITON_BUILTIN, True)
    core.to_tensor = to_tensor


def _visit_call(visit_call_of_3_2, handing_over: str):
    def visit_call(self, node):
        fn = self.visit(node.func)
        fn = fn.value if isinstance(fn, core.constexpr) else fn
        foreign = core.is_builtin(fn) and "_builder" not in inspect.signature(fn).parameters
        if not foreign or isinstance(fn, JITFunction):
            return visit_call_of_3_2(self, node)
        static_implementation = self.statically_implemented_functions.get(fn)
        if static_implementation is not None:
            return static_implementation(self, node)
        kws = dict(self.visit(keyword) for keyword in node.keywords)
        args = [self.visit(arg) for arg in node.args]
        parameters = inspect.signature(fn).parameters
        extra = {"_semantic": self.semantic} if handing_over == ALWAYS or "_semantic" in parameters else {}
        try:
            return fn(*args, **extra, **kws)
        except Exception as error:
            raise CompilationError(self.jit_fn.src, node, repr(error)) from error

    return visit_call
