// Kernels of functions of numbers (runtime/programs/ahead.py), and how NumPy calls them.
//
// A kernel is `void f(const int64_t* count, const void* x, ..., void* out)` for operands without gaps, each of the result's
// length. It computes `count` elements, or more if that is less than a vector: never more than kFewest.
#pragma once
#include <Python.h>

#include <cstdint>

namespace pb {

constexpr int64_t kFewest = 64;  // so many elements must fit where a kernel reads and writes
constexpr int kMostOperands = 4;

using FunctionKernel = void();  // of any number of pointers

// Calls a kernel of so many operands, the result among them, which is the last.
inline void call_kernel(FunctionKernel* kernel, int operands, int64_t count, void* const* at) {
    const int64_t* n = &count;
    switch (operands) {
        case 2: return reinterpret_cast<void (*)(const int64_t*, void*, void*)>(kernel)(n, at[0], at[1]);
        case 3: return reinterpret_cast<void (*)(const int64_t*, void*, void*, void*)>(kernel)(n, at[0], at[1], at[2]);
        default:
            return reinterpret_cast<void (*)(const int64_t*, void*, void*, void*, void*)>(kernel)(n, at[0], at[1], at[2],
                                                                                                  at[3]);
    }
}

// function_of_kernel(name, address, types, owner) -> a ufunc of NumPy's with one loop, which runs the kernel at an address;
// `types` are the dtypes of its operands and of the result, `owner` keeps the code.
bool add_functions(PyObject* module);

}  // namespace pb
