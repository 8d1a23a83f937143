//===- operators.cpp - Which kernel an operator has on npu
//--------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// What makes tensors and views is native, copies go between devices, and everything else is the
// CPU's.
//
//===---------------------------------------------------------------------------------------------===//

#include "fallback.h"
#include "host_alias.h"
#include "launches.h"
#include "memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace tdist::npu {
namespace {

using OptionalDtype = std::optional<c10::ScalarType>;
using OptionalLayout = std::optional<c10::Layout>;
using OptionalDevice = std::optional<c10::Device>;

/// Makes the device that a factory was asked for current, so that the allocator serves it.
class FactoryGuard {
public:
  FactoryGuard(OptionalLayout layout, OptionalDevice device, std::optional<bool> pinned)
      : guard(c10::Device(kNpu, resolveDevice(device ? device->index() : c10::DeviceIndex{-1}))) {
    TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == c10::kStrided,
                                "tensors on npu are strided, got layout ", *layout);
    TORCH_CHECK(!pinned.value_or(false), "only tensors on cpu can be pinned");
  }

private:
  c10::DeviceGuard guard;
};

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef size, OptionalDtype dtype, OptionalLayout layout,
                 OptionalDevice device, std::optional<bool> pinned,
                 std::optional<c10::MemoryFormat> format) {
  FactoryGuard guard(layout, device, pinned);
  return at::detail::empty_generic(size, deviceAllocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor emptyStrided(at::IntArrayRef size, at::IntArrayRef stride, OptionalDtype dtype,
                        OptionalLayout layout, OptionalDevice device, std::optional<bool> pinned) {
  FactoryGuard guard(layout, device, pinned);
  return at::detail::empty_strided_generic(size, stride, deviceAllocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor efficientZeroTensor(at::IntArrayRef size, OptionalDtype dtype, OptionalLayout layout,
                               OptionalDevice device, std::optional<bool> pinned) {
  FactoryGuard guard(layout, device, pinned);
  at::native::ZeroTensorAllocator allocator(c10::Device(kNpu, currentDevice()));
  return at::detail::empty_generic(size, &allocator, kKeys.add(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(dtype), std::nullopt);
}

const at::Tensor &resize(const at::Tensor &self, at::IntArrayRef size,
                         std::optional<c10::MemoryFormat> format) {
  c10::DeviceGuard guard(self.device());
  waitForMemory(self.storage()); // what is there moves to new memory when it grows
  return at::native::resize_(self, size, format);
}

at::Tensor &setEmpty(at::Tensor &self) {
  c10::DeviceGuard guard(self.device());
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, deviceAllocator(), true);
  return at::native::set_storage_cpu_(self, std::move(storage), 0, {0}, {});
}

at::Tensor &setStorage(at::Tensor &self, at::Storage source, int64_t offset, at::IntArrayRef size,
                       at::IntArrayRef stride) {
  c10::DeviceGuard guard(self.device());
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

/// Copies between any two devices of this process, and between an NPU and the CPU.
at::Tensor &copy(at::Tensor &self, const at::Tensor &source, bool /*nonBlocking*/) {
  HostAliases aliases;
  auto toHost = [&](const at::Tensor &tensor) {
    TORCH_CHECK(isNpu(tensor) || tensor.is_cpu(), "cannot copy between npu and ", tensor.device());
    return isNpu(tensor) ? aliases.toHost(tensor) : tensor;
  };
  toHost(self).copy_(toHost(source));
  return self;
}

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &destination, bool nonBlocking) {
  at::Tensor written = destination;
  return copy(written, self, nonBlocking);
}

at::Tensor copyFromAndResize(const at::Tensor &self, const at::Tensor &destination) {
  destination.resize_(self.sizes());
  return copyFrom(self, destination, false);
}

// Memory that a launch was given stays until the launch has ended, in whatever stream.
void recordStream(at::Tensor & /*self*/, c10::Stream /*stream*/) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &emptyStrided);
  m.impl("_efficientzerotensor", &efficientZeroTensor);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view",
         static_cast<at::Tensor (*)(const at::Tensor &, at::IntArrayRef)>(&at::native::view));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("resize_", &resize);
  m.impl("set_", &setEmpty);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("set_.source_Storage",
         static_cast<at::Tensor &(*)(at::Tensor &, at::Storage)>(&at::native::set_));
  m.impl("set_.source_Storage_storage_offset", &setStorage);
  m.impl("copy_", &copy);
  m.impl("_copy_from", &copyFrom);
  m.impl("_copy_from_and_resize", &copyFromAndResize);
  m.impl("record_stream", &recordStream);

  // torch would choose a convolution by device, and knows none for npu.
  m.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&runOnHostInFloat32>());
  m.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&runOnHostInFloat32>());
  // Its composed kernel looks for one of npu without asking the dispatcher.
  m.impl("_conj_physical", torch::CppFunction::makeFromBoxedFunction<&runOnHost>());
  for (const char *product :
       {"mm", "mm.out", "bmm", "bmm.out", "mv", "mv.out", "dot", "vdot", "addmm", "addmm.out",
        "addmm_", "addmv", "addmv.out", "addmv_", "baddbmm", "baddbmm.out", "baddbmm_",
        "_addmm_activation", "_addmm_activation.out"}) {
    m.impl(product, torch::CppFunction::makeFromBoxedFunction<&runOnHostInFloat32>());
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&runOnHost>());
}

/// Gives npu the CPU's own kernel of every operator that also has one made of other operators:
/// torch would take that one, which rounds otherwise and calls many operators in place of one.
void preferKernelsOfCpu() {
  c10::Dispatcher &dispatcher = c10::Dispatcher::singleton();
  // Never destroyed: an operator loses a kernel when its registration goes.
  static auto *registrations = new std::vector<c10::RegistrationHandleRAII>;
  for (const c10::OperatorName &name :
       dispatcher.getAllOpNamesForDispatchKey(c10::DispatchKey::CPU)) {
    if (name.getNamespace() != "aten") {
      continue;
    }
    std::optional<c10::OperatorHandle> op = dispatcher.findOp(name);
    auto has = [&](c10::DispatchKey key) { return op->hasKernelForDispatchKey(key); };
    if (op && has(c10::DispatchKey::CPU) && !has(c10::DispatchKey::PrivateUse1) &&
        !has(c10::DispatchKey::CompositeImplicitAutograd) &&
        (has(c10::DispatchKey::CompositeExplicitAutograd) ||
         has(c10::DispatchKey::CompositeExplicitAutogradNonFunctional))) {
      registrations->push_back(
          dispatcher.registerImpl(name, c10::DispatchKey::PrivateUse1,
                                  c10::KernelFunction::makeFromBoxedFunction<&runOnHost>(),
                                  std::nullopt, nullptr, "the CPU's kernel on npu"));
    }
  }
}

[[maybe_unused]] const bool preferred = [] {
  preferKernelsOfCpu();
  return true;
}();

} // namespace
} // namespace tdist::npu
