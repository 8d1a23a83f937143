//===- tdist-codegen.cpp - LLVM dialect to an object for this host --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <map>

namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("tdist-codegen");
cl::opt<std::string> inputName(cl::Positional, cl::desc("<module of the LLVM dialect>"),
                               cl::init("-"), cl::cat(category));
cl::opt<std::string> outputName("o", cl::desc("Object file to write"), cl::value_desc("file"),
                                cl::cat(category));
cl::opt<std::string> llvmName("emit-llvm", cl::desc("Write the optimised LLVM IR too"),
                              cl::value_desc("file"), cl::cat(category));
cl::opt<unsigned> optLevel("opt-level", cl::desc("Optimisation level, 0 to 3"), cl::init(3),
                           cl::cat(category));
cl::opt<bool> debugInfo("debug-info", cl::desc("Write line tables for debuggers"),
                        cl::cat(category));
cl::opt<bool> fusion("fp-fusion", cl::desc("Round a product and a sum of floats once"),
                     cl::cat(category));
cl::opt<bool>
    printTarget("print-target",
                cl::desc("Print triple, CPU and features that code is made for, and stop"),
                cl::cat(category));

/// The machine that this process runs on.
struct HostTarget {
  std::string triple = llvm::sys::getProcessTriple();
  std::string cpu = llvm::sys::getHostCPUName().str();
  std::string features;

  HostTarget() {
    // Sorted: caches take the text as a key.
    std::map<std::string, bool> sorted;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      sorted[feature.getKey().str()] = feature.getValue();
    for (const auto &[name, enabled] : sorted)
      features += (features.empty() ? "" : ",") + std::string(enabled ? "+" : "-") + name;
  }
};

llvm::CodeGenOptLevel codegenLevel() {
  switch (optLevel) {
  case 0:
    return llvm::CodeGenOptLevel::None;
  case 1:
    return llvm::CodeGenOptLevel::Less;
  case 2:
    return llvm::CodeGenOptLevel::Default;
  default:
    return llvm::CodeGenOptLevel::Aggressive;
  }
}

llvm::OptimizationLevel passLevel() {
  switch (optLevel) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

std::unique_ptr<llvm::TargetMachine> createTargetMachine(const HostTarget &host) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(host.triple, error);
  if (!target) {
    llvm::errs() << "error: no code generator for " << host.triple << ": " << error << "\n";
    return nullptr;
  }
  llvm::TargetOptions options;
  // a * b + c rounds twice unless the kernel, or its user, asks for a fused multiply-add.
  options.AllowFPOpFusion = fusion ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(host.triple, host.cpu, host.features, options, llvm::Reloc::PIC_,
                                  std::nullopt, codegenLevel()));
}

/// glibc's vector functions stand for exp, log, ... in loops; -lm finds them.
llvm::TargetLibraryInfoImpl libraryInfo(const llvm::Triple &triple) {
  llvm::TargetLibraryInfoImpl info(triple);
  if (triple.isOSLinux() && triple.getArch() == llvm::Triple::x86_64)
    info.addVectorizableFunctionsFromVecLib(llvm::TargetLibraryInfoImpl::LIBMVEC_X86, triple);
  return info;
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = optLevel > 1;
  tuning.SLPVectorization = optLevel > 1;
  // Tiles have static shapes, so LLVM would unroll whole loops before it looks for vectors in them.
  tuning.LoopUnrolling = false;
  // What -print-before-all, -time-passes and their like ask for.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::StandardInstrumentations instrumentations(module.getContext(), /*DebugLogging=*/false);
  instrumentations.registerCallbacks(callbacks, &modules);
  llvm::PassBuilder passes(&machine, tuning, std::nullopt, &callbacks);
  functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(libraryInfo(machine.getTargetTriple())); });
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager manager = optLevel == 0
                                        ? passes.buildO0DefaultPipeline(passLevel())
                                        : passes.buildPerModuleDefaultPipeline(passLevel());
  manager.run(module, modules);
}

/// LLVM 19 takes base[(7 * i) % 16] for accesses 7 apart, and reads past the end of the table
/// (llvm-project issue 156849): nothing may be read in groups of regular distance.
void avoidInterleavedAccesses() {
  auto &known = cl::getRegisteredOptions();
  auto found = known.find("enable-interleaved-mem-accesses");
  if (found != known.end() && found->second->getNumOccurrences() == 0)
    found->second->addOccurrence(0, found->first(), "false");
}

std::unique_ptr<llvm::ToolOutputFile> openOutput(llvm::StringRef name) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(name, &error);
  if (!file)
    llvm::errs() << "error: " << error << "\n";
  return file;
}

bool writeObject(llvm::Module &module, llvm::TargetMachine &machine) {
  std::unique_ptr<llvm::ToolOutputFile> file = openOutput(outputName);
  if (!file)
    return false;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager manager;
  manager.add(new llvm::TargetLibraryInfoWrapperPass(libraryInfo(machine.getTargetTriple())));
  if (machine.addPassesToEmitFile(manager, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    llvm::errs() << "error: " << machine.getTargetTriple().str() << " has no object files\n";
    return false;
  }
  manager.run(module);
  file->os().write(bytes.data(), bytes.size());
  file->keep();
  return true;
}

bool writeLLVM(const llvm::Module &module) {
  std::unique_ptr<llvm::ToolOutputFile> file = openOutput(llvmName);
  if (!file)
    return false;
  module.print(file->os(), nullptr);
  file->keep();
  return true;
}

std::unique_ptr<llvm::Module> translate(mlir::MLIRContext &context,
                                        llvm::LLVMContext &llvmContext) {
  llvm::SourceMgr sources;
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = mlir::openInputFile(inputName, &error);
  if (!input) {
    llvm::errs() << "error: " << error << "\n";
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return nullptr;
  if (debugInfo) {
    mlir::PassManager manager(&context);
    manager.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass());
    if (mlir::failed(manager.run(*module)))
      return nullptr;
  }
  return mlir::translateModuleToLLVMIR(*module, llvmContext);
}

} // namespace

int main(int argc, char **argv) {
  const llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "LLVM dialect to an object file for this host\n");

  avoidInterleavedAccesses();
  const HostTarget host;
  if (printTarget) {
    llvm::outs() << "triple: " << host.triple << "\ncpu: " << host.cpu
                 << "\nfeatures: " << host.features << "\n";
    return 0;
  }
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(host);
  if (!machine)
    return 1;

  mlir::DialectRegistry registry;
  registry.insert<mlir::LLVM::LLVMDialect, mlir::DLTIDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> module = translate(context, llvmContext);
  if (!module)
    return 1;
  module->setTargetTriple(host.triple);
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  if (!llvmName.empty() && !writeLLVM(*module))
    return 1;
  if (!outputName.empty() && !writeObject(*module, *machine))
    return 1;
  return 0;
}
