//===- SimPipeline.cpp - All passes from linalg IR to the LLVM dialect ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

void tdist::registerSimDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
}

tdist::SimPipelineOptions tdist::hostPipelineOptions() {
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return {.vectorBits = 512, .vectorRegisters = 32};
  if (features.lookup("avx2"))
    return {.vectorBits = 256, .vectorRegisters = 16};
  if (features.lookup("neon"))
    return {.vectorBits = 128, .vectorRegisters = 32};
  return {.vectorBits = 128, .vectorRegisters = 16};
}

namespace {

/// Gives every foreign op a meaning, while values are still tensors.
void addFrontPasses(OpPassManager &manager, const tdist::SimPipelineOptions &options) {
  // First: it replaces ops that hold regions which MLIR cannot verify.
  manager.addPass(tdist::createConvertTritonCallsToLinalg({.printing = options.printing}));
  manager.addPass(tdist::createDropForeign());
  manager.addPass(tdist::createProtectSharedBuffers());
  manager.addPass(tdist::createAddViewOffsets());
  manager.addPass(tdist::createSplitVectorHalves());
  manager.addPass(tdist::createConvertExternToCall());
  // Before there are loops that no kernel has written.
  manager.addPass(tdist::createGiveTurnsInLoops());
  manager.addPass(tdist::createConvertAtomicsToLLVM());
  manager.addPass(tdist::createRejectForeign());
}

/// Tensors to buffers with a place in memory.
void addBufferPasses(OpPassManager &manager, const tdist::SimPipelineOptions &options) {
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  manager.addNestedPass<func::FuncOp>(tdist::createFuseElementwise());
  bufferization::OneShotBufferizationOptions bufferize;
  bufferize.allowReturnAllocsFromLoops = true;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  manager.addNestedPass<func::FuncOp>(tdist::createOwnLoopBuffers());
  manager.addNestedPass<func::FuncOp>(tdist::createConvertMatmulToVector(
      {.vectorBits = options.vectorBits, .vectorRegisters = options.vectorRegisters}));
  manager.addPass(tdist::createPlanMemory());
}

/// Buffers to loops, and loops to the LLVM dialect.
void addLoopPasses(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(tdist::createConvertCopyToLoops());
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addNestedPass<func::FuncOp>(tdist::createWidenNarrowFloats());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  manager.addPass(arith::createArithExpandOpsPass(expand));
  manager.addNestedPass<func::FuncOp>(tdist::createGuardDivision());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createConvertSCFToCFPass());
}

void addLLVMPasses(OpPassManager &manager) {
  manager.addPass(tdist::createAddKernelEntry());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

} // namespace

void tdist::buildSimPipeline(OpPassManager &manager, const SimPipelineOptions &options) {
  addFrontPasses(manager, options);
  addBufferPasses(manager, options);
  addLoopPasses(manager);
  addLLVMPasses(manager);
  if (options.strict)
    manager.addPass(tdist::createRouteGlobalMemory());
}

namespace {

struct CommandLineOptions : PassPipelineOptions<CommandLineOptions> {
  Option<unsigned> vectorBits{*this, "vector-bits",
                              llvm::cl::desc("Width of a vector register (default: this host's)"),
                              llvm::cl::init(tdist::hostPipelineOptions().vectorBits)};
  Option<unsigned> vectorRegisters{
      *this, "vector-registers",
      llvm::cl::desc("Number of vector registers (default: this host's)"),
      llvm::cl::init(tdist::hostPipelineOptions().vectorRegisters)};
  Option<bool> strict{*this, "strict",
                      llvm::cl::desc("Let the runtime do loads and stores that others may see"),
                      llvm::cl::init(false)};
  Option<bool> printing{*this, "print", llvm::cl::desc("Whether tl.device_print prints"),
                        llvm::cl::init(true)};
};

} // namespace

void tdist::registerSimPipeline() {
  PassPipelineRegistration<CommandLineOptions>(
      "tdist-to-sim", "Lower generic linalg IR of triton-ascend's adapter to the LLVM dialect",
      [](OpPassManager &manager, const CommandLineOptions &options) {
        buildSimPipeline(manager, {.vectorBits = options.vectorBits,
                                   .vectorRegisters = options.vectorRegisters,
                                   .printing = options.printing,
                                   .strict = options.strict});
      });
}
