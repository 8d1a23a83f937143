//===- Passes.td - From linalg IR to the simulator's native code -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef TDIST_CONVERSION_PASSES
#define TDIST_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def DropForeign : Pass<"tdist-drop-foreign", "mlir::ModuleOp"> {
  let summary = "Drop marks and attributes of foreign dialects that change no result";
  let description = [{
    The adapter leaves hints for the NPU's own compiler: `annotation.mark` ops and attributes
    such as `hivm.unlikely_condition`. They say how to make a kernel fast on an NPU, and nothing
    about what it computes. A barrier within one program (`gpu.barrier`) has nobody to wait for.
  }];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def ProtectSharedBuffers : Pass<"tdist-protect-shared-buffers", "mlir::ModuleOp"> {
  let summary = "Compute nothing in place in a buffer that is also read as a buffer";
  let description = [{
    The adapter calls the buffer of a loaded tile `writable` once it is a tensor, and still reads it
    directly in scans and atomics. Such a tensor loses the mark, so that bufferization takes a new
    buffer for what is computed from it.
  }];
  let dependentDialects = ["mlir::bufferization::BufferizationDialect"];
}

def AddViewOffsets : Pass<"tdist-add-view-offsets", "mlir::ModuleOp"> {
  let summary = "Make the address of a view include the view's offset";
  let description = [{
    `tt.ptr_to_int` of an offset pointer reaches us as `memref.extract_aligned_pointer_as_index`
    of a view, and that op yields the address of the *buffer*: the offset of the view is lost.
    This pass adds offset * sizeof(element), static or dynamic.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def SplitVectorHalves : Pass<"tdist-split-vector-halves", "mlir::ModuleOp"> {
  let summary = "Run what depends on sub_vec_id() once for each vector core of a mixed kernel";
  let description = [{
    An AI core of a mixed kernel is a cube core with two vector cores, which run the same program and
    differ in `sub_vec_id`. Everything that depends on it, by its operands, by a condition around it
    or by a local buffer, is there twice after this pass, for core 0 and right behind it for core 1.
    Everything else, and so an op with a side effect that does not depend on it, is there once.
    A `tl.dot` of something that depends on it is an error. In other kernels nothing happens, and
    `sub_vec_id` is 0.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def ConvertExternToCall : Pass<"tdist-convert-extern-to-call", "mlir::ModuleOp"> {
  let summary = "Turn tt.extern_elementwise into calls of the runtime or of the user's libraries";
  let description = [{
    A symbol `tdist_X` of library "tdist" becomes a call of `tdist_sim_X` with one more operand,
    a pointer to the constant source location of the call. Any other symbol becomes a call of the
    C function of that name; the paths of its libraries are kept in the module attribute
    `tdist.extern_libs`.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::LLVM::LLVMDialect"];
}

def ConvertTritonCallsToLinalg : Pass<"tdist-convert-triton-calls-to-linalg", "mlir::ModuleOp"> {
  let summary = "Turn calls of @triton_cumsum, sort, print, ... and hfusion ops into upstream ops";
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::LLVM::LLVMDialect", "mlir::math::MathDialect",
                           "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect"];
  let options = [
    Option<"printing", "print", "bool", /*default=*/"true",
           "Whether tl.device_print prints; else it is removed">
  ];
}

def GiveTurnsInLoops : Pass<"tdist-give-turns-in-loops", "mlir::ModuleOp"> {
  let summary = "Let other programs run while one is in a loop";
  let description = [{
    The programs of a simulated NPU take turns on a few threads: one that waits in a loop of its own,
    for memory that another one changes, must let that one run. Loops count down at their back edges
    and call the runtime now and then: `scf.while` with an access to memory as one that waits, other
    `scf.while` and `scf.for` with an access to memory as one that computes. A loop that waits says
    where in the kernel's source it stands.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def ConvertAtomicsToLLVM : Pass<"tdist-convert-atomics-to-llvm", "mlir::ModuleOp"> {
  let summary = "Turn linalg.generic with GenericAtomicRMW into atomic instructions";
  let description = [{
    The adapter makes two ops of one `tl.atomic_*`: a linalg.generic that updates global memory,
    and, where the result is used, a memref.copy of the same memory that stands for the old value.
    Both become one atomic fetch-and-op an element, with the memory order that the kernel asks for.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::linalg::LinalgDialect", "mlir::LLVM::LLVMDialect",
                           "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect"];
}

def RejectForeign : Pass<"tdist-reject-foreign", "mlir::ModuleOp"> {
  let summary = "Fail on every op and call that no earlier pass knows";
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def FuseElementwise : Pass<"tdist-fuse-elementwise", "mlir::func::FuncOp"> {
  let summary = "Merge elementwise ops on tensors, so that a chain is one loop";
  let description = [{
    Everything but contractions becomes linalg.generic first. Sums and products in reductions may
    be reordered after this pass, as their order is free in Triton.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def OwnLoopBuffers : Pass<"tdist-own-loop-buffers", "mlir::func::FuncOp"> {
  let summary = "Give every buffer that a loop carries a place of its own";
  let description = [{
    After bufferization a loop may yield a buffer that its body allocates. Memory planning gives
    each allocation one place for the whole run of a program, so the next iteration would overwrite
    what it still reads. Each carried buffer gets its own allocation before the loop; the body's
    result is copied there at its end.
  }];
  let dependentDialects = ["mlir::memref::MemRefDialect"];
}

def ConvertMatmulToVector : Pass<"tdist-convert-matmul-to-vector", "mlir::func::FuncOp"> {
  let summary = "Turn linalg.matmul and linalg.batch_matmul on buffers into register-tiled loops";
  let options = [
    Option<"vectorBits", "vector-bits", "unsigned", "256", "Width of a vector register">,
    Option<"vectorRegisters", "vector-registers", "unsigned", "16", "Number of them">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
                           "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
                           "mlir::vector::VectorDialect"];
}

def PlanMemory : Pass<"tdist-plan-memory", "mlir::ModuleOp"> {
  let summary = "Place all buffers of a kernel in one block of memory";
  let description = [{
    A kernel's tiles have static shapes, so all its buffers fit one block that is taken from the
    runtime when a program starts and given back when it ends: no allocation in a loop, no growth.
    Small buffers live on the stack.
  }];
  let dependentDialects = ["mlir::func::FuncDialect", "mlir::LLVM::LLVMDialect",
                           "mlir::memref::MemRefDialect"];
}

def ConvertCopyToLoops : Pass<"tdist-convert-copy-to-loops", "mlir::func::FuncOp"> {
  let summary = "Turn memref.copy into loops, so that no library function is needed";
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def WidenNarrowFloats : Pass<"tdist-widen-narrow-floats", "mlir::func::FuncOp"> {
  let summary = "Do each scalar operation on f16 and bf16 in f32, and round its result";
  let description = [{
    The result of one operation is the same as in 16 bits, and each operation rounds, as on an NPU.
    No operation is left to a soft-float function that the host's libgcc may not have.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def GuardDivision : Pass<"tdist-guard-division", "mlir::func::FuncOp"> {
  let summary = "Give integer division by zero a result";
  let description = [{
    Lanes that a mask leaves out often hold zeros, and are divided all the same: on an NPU that gives
    some number that nobody looks at, on a CPU it ends the process. Here x / 0 is 0 and x % 0 is x.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def AddKernelEntry : Pass<"tdist-add-kernel-entry", "mlir::ModuleOp"> {
  let summary = "Add tdist_kernel_entry(args, grid, pid), which unpacks and calls the kernel";
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::func::FuncDialect",
                           "mlir::LLVM::LLVMDialect"];
}

def RouteGlobalMemory : Pass<"tdist-route-global-memory", "mlir::ModuleOp"> {
  let summary = "Let the runtime do the loads and stores of memory that others may see";
  let description = [{
    For the strict mode, in which a store is seen by others as late as the rules allow: the runtime
    keeps it until the program releases it. Memory of the program alone is left to the code itself.
    Atomic operations stay, behind a release.
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}

def RebasePointers : Pass<"tdist-rebase-pointers", "mlir::ModuleOp"> {
  let summary = "Turn the offsets of symm_at and consume_token into pointers of the device library";
  let description = [{
    The front end writes `symm_at(p, pe)` as p + delta(p, pe) and `consume_token(p, t)` as p + zero(t).
    Views whose offset contains delta or zero get another buffer instead, the result of aclshmem_ptr
    or of aclshmem_consume_token on the one they had: so the access depends on the call also after
    the compiler has folded the offset. A delta that is used in another way becomes the distance
    between the two buffers, a zero the consumed number 0.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "tdist::HIVMDialect"];
}

def ConvertExternToHIVM : Pass<"tdist-convert-extern-to-hivm", "mlir::ModuleOp"> {
  let summary = "Turn tt.extern_elementwise into calls of the device library";
  let description = [{
    An address in the operands becomes the view that it is the address of, offset and all. In a mixed
    kernel what has an effect is done by the first vector core of each program, unless it depends on
    sub_vec_id, and after all cores of the program have got that far.
  }];
  let options = [Option<"soc", "soc", "std::string", /*default=*/"\"\"", "The SoC, such as Ascend910B3">];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect", "tdist::HIVMDialect"];
}

def CheckSignalOrder : Pass<"tdist-check-signal-order", "mlir::ModuleOp"> {
  let summary = "Fail on a signal that may be seen before the data that it stands for";
  let description = [{
    Reads what AscendNPU-IR's compiler has made of a kernel, in generic form, after
    convert-hivm-to-std: one function for each kind of core. Every call that others can notice must
    come after all earlier stores of its core are complete: behind a barrier of all pipes, or behind
    flags from the pipes that store (MTE3, and FIX on a cube core). In a mixed kernel it must also
    come after the stores of the program's other cores: behind a flag of the cube core that the cube
    core sets when its own stores and those of both vector cores are complete.
  }];
  let dependentDialects = ["tdist::HIVMDialect"];
}

#endif // TDIST_CONVERSION_PASSES
