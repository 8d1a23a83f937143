//===- device.h - The simulated NPUs of this process
//-------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// torch knows the NPU as its device type PrivateUse1, renamed to "npu" from Python. This header
// answers how many there are and which one is current in this thread.
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_DEVICE_H
#define TDIST_TORCH_DEVICE_H

#include <c10/core/Device.h>

namespace tdist::npu {

inline constexpr c10::DeviceType kNpu = c10::DeviceType::PrivateUse1;

/// How many NPUs this process sees; 0 until Python has said so.
c10::DeviceIndex deviceCount() noexcept;

/// Sets the number of NPUs. To be called once, before any tensor is on one.
void setDeviceCount(c10::DeviceIndex count) noexcept;

/// The NPU that `device="npu"` means in the calling thread.
c10::DeviceIndex currentDevice() noexcept;

/// Makes `index` the calling thread's NPU and returns the one before. An index that no NPU has is
/// an error that names it.
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index);

/// `index` itself, or the current NPU where it is negative; an index that no NPU has is an error.
c10::DeviceIndex resolveDevice(c10::DeviceIndex index);

} // namespace tdist::npu

#endif // TDIST_TORCH_DEVICE_H
