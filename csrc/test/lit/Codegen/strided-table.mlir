// RUN: tdist-opt %s --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --emit-llvm=%t.ll -o %t.o
// RUN: FileCheck %s --input-file=%t.ll

// (7 * i) % 16 wraps: no group of loads 7 apart may take its place.
// CHECK-NOT: load <56 x float>
func.func @kernel(%x: memref<?xf32>, %out: memref<?xf32>,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %seven = arith.constant 7 : i32
  %sixteen = arith.constant 16 : i32
  scf.for %i = %c0 to %c16 step %c1 {
    %j = arith.index_cast %i : index to i32
    %scaled = arith.muli %j, %seven : i32
    %wrapped = arith.remsi %scaled, %sixteen : i32
    %at = arith.index_cast %wrapped : i32 to index
    %value = memref.load %x[%at] : memref<?xf32>
    memref.store %value, %out[%i] : memref<?xf32>
  }
  return
}
