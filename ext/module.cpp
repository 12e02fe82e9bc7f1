// The extension module pullback._ext._core. Bindings only: each part is documented in its own header.
#define PULLBACK_IMPORT_NUMPY
#include "numpy_api.h"

#include <nanobind/nanobind.h>

#include "allocator.h"
#include "array.h"
#include "dlpack.h"
#include "trace_state.h"

namespace nb = nanobind;

namespace {

// Parts written with the C API report failure by an error that is set.
void check(bool ok) {
    if (!ok) throw nb::python_error();
}

nb::dict memory_stats() {
    pb::MemoryStats stats = pb::memory_stats();
    nb::dict d;
    d["bytes_in_use"] = stats.bytes_in_use;
    d["peak_bytes_in_use"] = stats.peak_bytes_in_use;
    d["bytes_cached"] = stats.bytes_cached;
    d["cache_limit"] = stats.cache_limit;
    d["num_allocs"] = stats.num_allocs;
    d["num_reused"] = stats.num_reused;
    return d;
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native runtime of pullback: arrays, call cache, memory, threads.";
    check(PyArray_ImportNumPyAPI() == 0);

    check(pb::add_array_type(m.ptr()));
    check(pb::add_dlpack(m.ptr()));
    check(pb::add_trace_state(m.ptr()));

    m.def("memory_stats", memory_stats,
          "Bytes in use and cached by the allocator of array data, its limit, and how many blocks it gave out and reused.");
    m.def("trim_memory", [](size_t keep) { pb::trim_memory(keep); }, nb::arg("keep") = 0,
          "Gives cached memory back to the system until at most `keep` bytes are cached.");
    m.def("set_memory_cache_limit", [](size_t bytes) { pb::set_cache_limit(bytes); }, nb::arg("bytes"),
          "Sets how many bytes of freed memory may be kept for reuse.");
}
