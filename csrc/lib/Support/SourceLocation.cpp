//===- SourceLocation.cpp - Where in the user's kernel an op comes from ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/SourceLocation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

FileLineColLoc tdist::findKernelLocation(Location location) {
  return llvm::TypeSwitch<LocationAttr, FileLineColLoc>(location)
      .Case([](FileLineColLoc place) { return place; })
      .Case([](NameLoc name) { return findKernelLocation(name.getChildLoc()); })
      .Case([](OpaqueLoc opaque) { return findKernelLocation(opaque.getFallbackLocation()); })
      .Case([](CallSiteLoc call) {
        FileLineColLoc caller = findKernelLocation(call.getCaller());
        return caller ? caller : findKernelLocation(call.getCallee());
      })
      .Case([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (FileLineColLoc place = findKernelLocation(part))
            return place;
        return FileLineColLoc();
      })
      .Default([](LocationAttr) { return FileLineColLoc(); });
}

Location tdist::kernelLocation(Location location) {
  if (FileLineColLoc place = findKernelLocation(location))
    return place;
  return location;
}
