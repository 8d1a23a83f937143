//===- tdist-opt.cpp - mlir-opt with the passes of this project -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/HIVMDialect.h"
#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace mlir;

namespace {

cl::opt<std::string> inputName(cl::Positional, cl::desc("<module>"), cl::init("-"));
cl::opt<std::string> outputName("o", cl::desc("Where the result goes"), cl::value_desc("file"),
                                cl::init("-"));
cl::opt<bool> allowUnregistered("allow-unregistered-dialect",
                                cl::desc("Read ops of dialects that are not known here"));

LogicalResult run(MLIRContext &context, const PassPipelineCLParser &passes) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &error);
  std::unique_ptr<llvm::ToolOutputFile> output;
  if (input)
    output = openOutputFile(outputName, &error);
  if (!output) {
    llvm::errs() << "error: " << error << "\n";
    return failure();
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  const SourceMgrDiagnosticHandler handler(sources, &context);
  // The regions of foreign ops hold ops that are right only inside those. The first passes of the
  // pipeline replace the foreign ops, and all is verified after each pass.
  const ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return failure();
  // A pass on functions may be named without the module around them.
  PassManager manager(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  // Prints when it goes out of scope, after the passes.
  DefaultTimingManager timer;
  applyDefaultTimingManagerCLOptions(timer);
  TimingScope timing = timer.getRootScope();
  manager.enableTiming(timing);
  if (failed(applyPassManagerCLOptions(manager)) ||
      failed(passes.addToPipeline(manager, [&](const Twine &message) {
        llvm::errs() << "error: " << message << "\n";
        return failure();
      })))
    return failure();
  if (manager.empty() ? failed(verify(*module)) : failed(manager.run(*module)))
    return failure();
  module->print(output->os());
  output->os() << '\n';
  output->keep();
  return success();
}

} // namespace

int main(int argc, char **argv) {
  const llvm::InitLLVM init(argc, argv);
  tdist::registerTdistPasses();
  tdist::registerHIVMPipeline();
  tdist::registerSimPipeline();
  // For tests and for people who look at one pass: they make its output short.
  registerCanonicalizer();
  registerCSE();
  memref::registerExpandStridedMetadata();
  registerAsmPrinterCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  const PassPipelineCLParser passes("", "Passes to run");
  cl::ParseCommandLineOptions(argc, argv, "kernel lowering of triton-distributed-ascend\n");

  // Only what kernels need: registering all of MLIR costs more time than lowering a small kernel.
  DialectRegistry registry;
  tdist::registerSimDialects(registry);
  registry.insert<tdist::HIVMDialect>();
  // One small module: threads would cost more than they give.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(allowUnregistered);
  return failed(run(context, passes)) ? 1 : 0;
}
