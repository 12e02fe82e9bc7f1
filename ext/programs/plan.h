// Plans: programs for small arrays that need no compilation, as lists of strided loops.
//
// A step applies one loop to operands in memory. The loops are NumPy's own (found by ufunc._resolve_dtypes_and_context and
// ufunc._get_strided_loop), a few of ours (plan_loops.h: copies, conversions, selection), or a Python function of ndarrays
// for everything that has neither. What is decided once, when the plan is made: loops, shapes, strides, memory; a run only
// goes through the list.
//
// An operand is addressed as (base, offset in bytes, strides in bytes); base counts the pointers of a program: inputs,
// constants, outputs, and last the arena. Nothing checks that they stay inside their memory: plans come from
// runtime/eager/plan.py alone.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "numpy_api.h"

namespace pb {

using StridedLoop = int(void* context, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void* aux);

struct PlanStep {
    StridedLoop* loop = nullptr;  // null: a call of `host`
    void *context = nullptr, *aux = nullptr;
    PyObject* owner = nullptr;  // strong or null: the capsule that owns context and aux, or the function to call
    uint32_t operands = 0, rank = 0;
    uint32_t outputs = 0;               // host: the last so many operands are results
    std::vector<npy_intp> outer;        // lengths of the dimensions around the loop
    std::vector<npy_intp> outer_steps;  // [operand][dimension]: bytes
    std::vector<npy_intp> dimensions;   // of one run of the loop
    std::vector<npy_intp> strides;      // of one run of the loop
    std::vector<npy_intp> bases, offsets;
    std::vector<PyArray_Descr*> descrs;  // host: strong, per operand; outer_steps has `dims` of operand after operand
    std::vector<std::vector<npy_intp>> shapes, steps;  // host: per operand
};

struct Plan {
    std::vector<PlanStep> steps;
    bool has_host = false;
    mutable std::atomic<int64_t> host_ns = 0;  // that its Python functions have taken so far
    ~Plan();
};

// The plan described by a sequence of steps, each one of
//   (loop, dimensions, strides, outer, ((base, offset, outer strides), ...))
//   (function, number of results, ((base, offset, shape, strides, dtype), ...))
// where loop is a capsule of NumPy's, or the name of one of ours with what it depends on: ('copy', itemsize),
// ('select', itemsize), ('convert', dtype, dtype), or that of a reduction: ('add', dtype, bytes of a vector). Null with an
// error set: NotImplementedError if there is no such loop.
std::unique_ptr<Plan> read_plan(PyObject* steps);

// Runs it. `pointers` as described above. False with an error set if a function raised. Needs the GIL if has_host.
bool run_plan(const Plan& plan, void** pointers);

}  // namespace pb
