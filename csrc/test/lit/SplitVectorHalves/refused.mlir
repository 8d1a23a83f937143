// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-split-vector-halves 2>&1 | FileCheck %s

// CHECK: kernel.py:3:4: error: tl.dot of values that depend on sub_vec_id() cannot be simulated
func.func @kernel(%a: tensor<4x4xf32>, %scale: f32, %out: memref<4x4xf32>) attributes {mix_mode = "mix"} {
  %zero = arith.constant 0 : i32
  %core = "tt.extern_elementwise"(%zero) <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  %value = arith.sitofp %core : i32 to f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %left = linalg.fill ins(%value : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %product = linalg.matmul ins(%left, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32> loc("kernel.py":3:4)
  bufferization.materialize_in_destination %product in writable %out : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
