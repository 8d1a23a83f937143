//===- MemRefFromPointer.cpp - A memref over memory given by a pointer ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/MemRefFromPointer.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

using namespace mlir;

Value tdist::memRefFromPointer(OpBuilder &builder, Location location, MemRefType type,
                               Value pointer) {
  const LLVMTypeConverter converter(builder.getContext());
  MemRefDescriptor descriptor =
      MemRefDescriptor::undef(builder, location, converter.convertType(type));
  descriptor.setAllocatedPtr(builder, location, pointer);
  descriptor.setAlignedPtr(builder, location, pointer);
  descriptor.setConstantOffset(builder, location, 0);
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    const int64_t size =
        type.isDynamicDim(dim) ? std::numeric_limits<int64_t>::max() : type.getDimSize(dim);
    descriptor.setConstantSize(builder, location, dim, size);
    descriptor.setConstantStride(builder, location, dim, stride);
    stride *= size;
  }
  return builder.create<UnrealizedConversionCastOp>(location, type, ValueRange{Value(descriptor)})
      .getResult(0);
}
