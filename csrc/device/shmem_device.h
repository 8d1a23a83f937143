//===- shmem_device.h - aclshmem's device functions -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cstdint>

#include "device/shmem_def.h"

#include "device/gm2gm/shmem_device_amo.h"
#include "device/gm2gm/shmem_device_p2p_sync.h"
#include "device/gm2gm/shmem_device_rma.h"
