# Written by CMake at build time (csrc/cmake/_build_info.py.in); its place is where lib/ and bin/ are.
LLVM_PREFIX: str
LLVM_VERSION: str
BUILD_TYPE: str
COMPILER: str
SOURCE_HASH: str
