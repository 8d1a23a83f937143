// RUN: not tdist-opt %s --tdist-lower-to-hivm=soc=Ascend310P3 2>&1 | FileCheck %s

// CHECK: error: soc is 'Ascend310P3'; it must be the name of an NPU, such as Ascend910B3
module {
}
