// The extension module pullback._ext._core. Bindings only: each part is documented in its own header.
#define PULLBACK_IMPORT_NUMPY
#include "numpy_api.h"

#include <nanobind/nanobind.h>

#include "arrays/allocator.h"
#include "arrays/array.h"
#include "arrays/aval.h"
#include "programs/blas_threads.h"
#include "programs/blocks.h"
#include "calls/call_cache.h"
#include "calls/call_table.h"
#include "cpu_features.h"
#include "collectives/collectives.h"
#include "threads/device_program.h"
#include "threads/device_team.h"
#include "arrays/dlpack.h"
#include "programs/executable.h"
#include "programs/foreign.h"
#include "programs/functions.h"
#include "threads/fork_gate.h"
#include "programs/host_call.h"
#include "programs/progress.h"
#include "programs/spans.h"
#include "arrays/indexing.h"
#include "programs/loader.h"
#include "programs/sum_order.h"
#include "post_order.h"
#include "sorting/selection.h"
#include "sorting/sorting.h"
#include "source.h"
#include "standalone_archive.h"
#include "calls/static_value.h"
#include "threads/thread_pool.h"
#include "fourier/fourier.h"
#include "pytree/pytree.h"
#include "calls/trace_state.h"
#include "calls/transformed.h"

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

// What the garbage collector knows of these, wherever it keeps them, is that they are young.
void track_anew(nb::list objects) {
    for (nb::handle object : objects) {
        if (!PyObject_GC_IsTracked(object.ptr())) continue;
        PyObject_GC_UnTrack(object.ptr());
        PyObject_GC_Track(object.ptr());
    }
}

void set_num_threads(int n) {
    if (n < 1) throw nb::value_error("set_num_threads: n must be at least 1");
    pb::set_num_threads(n);
}

nb::dict symbol_addresses() {
    nb::dict d;
    auto add = [&](const char* name, auto* function) { d[name] = reinterpret_cast<uintptr_t>(function); };
    add("pb_parallel_for", pb_parallel_for);
    add("pb_interrupt_pending", pb_interrupt_pending);
    add("pb_step", pb_step);
    add("pb_span", pb_span);
    add("pb_host_call", pb_host_call);
    add("pb_host_call_index", pb_host_call_index);
    add("pb_show", pb_show);
    add("pb_show_copy", pb_show_copy);
    add("pb_meet", pb_meet);
    add("pb_take", pb_take);
    add("pb_part", pb_part);
    add("pb_withdraw", pb_withdraw);
    add("pb_device_index", pb_device_index);
    add("pb_collective", pb_collective);
    add("pb_collective_begin", pb_collective_begin);
    add("pb_collective_end", pb_collective_end);
    add("pb_blas_begin", pb_blas_begin);
    add("pb_blas_end", pb_blas_end);
    add("pb_sort", pb_sort);
    add("pb_sort_pairs", pb_sort_pairs);
    add("pb_select", pb_select);
    add("pb_partition", pb_partition);
    add("pb_top_k", pb_top_k);
    add("pb_fourier_f32", pb_fourier_f32);
    add("pb_fourier_f64", pb_fourier_f64);
    return d;
}

nb::bytes standalone_archive() {
    pb::Bytes bytes = pb::standalone_archive();
    return nb::bytes(bytes.data, bytes.size);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native runtime of pullback: arrays, call cache, memory, threads.";
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        // Arrays, tables and threads are those of the process: the GIL of one interpreter does not guard them from another.
        throw nb::import_error("pullback works in the main interpreter only; it cannot be imported in a subinterpreter");
    }
    check(pb::check_main_interpreter());
    check(PyArray_ImportNumPyAPI() == 0);
    check(pb::find_quick_sorts());

    check(pb::add_array_type(m.ptr()));
    check(pb::add_dlpack(m.ptr()));
    check(pb::add_trace_state(m.ptr()));
    check(pb::add_source(m.ptr()));
    check(pb::add_post_order(m.ptr()));
    check(pb::add_static_form(m.ptr()));
    check(pb::add_transformed(m.ptr()));
    check(pb::add_host_calls(m.ptr()));
    check(pb::add_progress(m.ptr()));
    check(pb::add_spans(m.ptr()));
    check(pb::add_foreign(m.ptr()));
    check(pb::add_functions(m.ptr()));
    check(pb::add_fork_gate(m.ptr()));
    check(pb::add_loader(m.ptr()));
    check(pb::add_executable_type(m.ptr()));
    check(pb::add_device_program_type(m.ptr()));
    check(pb::add_processes(m.ptr()));
    static PyMethodDef communication = {"communication", pb::make_communication, METH_VARARGS,
        "communication(processes, local, sites, fingerprint)\n--\n\nWhat a program's collective operations are."};
    check(PyModule_AddObject(m.ptr(), "communication", PyCFunction_New(&communication, nullptr)) == 0);
    check(pb::add_call_cache_types(m.ptr()));

    bind_pytree(m);

    // What Python's side of the same work goes by, too.
    m.attr("ALIGNMENT") = pb::kAlignment;
    m.attr("SHARED_BYTES") = pb::kSharedBytes;
    m.attr("DECIDES") = pb::kDecides;
    m.attr("FEWEST") = pb::kFewest;
    m.attr("SUM_BLOCK") = pb::kSumBlock;
    m.attr("SUM_FEW") = pb::kSumFew;
    m.attr("SUM_CHAIN") = pb::kSumChain;
    m.attr("SUM_STEPS") = pb::kSumSteps;
    m.attr("LARGE") = pb::AnySize::kLarge;
    m.attr("PAYS") = int64_t(pb::AnySize::kPays);
    m.attr("COMPILATION") = pb::Entry::kCompilation;
    m.attr("BLOCK_ARENA") = pb::Blocks::kMaxArena;
#if defined(__x86_64__)
    m.attr("CPU_LEVEL") = pb::cpu_features.level;
#else
    m.attr("CPU_LEVEL") = 0;
#endif

    m.def("memory_stats", memory_stats,
          "Bytes in use and cached by the allocator of array data, its limit, and how many blocks it gave out and "
          "reused.");
    m.def(
        "trim_memory", [](size_t keep) { pb::trim_memory(keep); }, nb::arg("keep") = 0,
        "Gives cached memory back to the system until at most `keep` bytes are cached.");
    m.def(
        "set_memory_cache_limit", [](size_t bytes) { pb::set_cache_limit(bytes); }, nb::arg("bytes"),
        "Sets how many bytes of freed memory may be kept for reuse.");

    m.def("num_threads", pb::num_threads, "How many threads a parallel loop uses, the caller included.");
    m.def("set_num_threads", set_num_threads, nb::arg("n"),
          "Sets how many threads a parallel loop uses; ValueError if n < 1.");
    m.def("symbol_addresses", symbol_addresses,
          "The addresses of the C functions that generated code may call, by name.");
    m.def("track_anew", track_anew, nb::arg("objects"), "Makes objects young for the garbage collector, frozen ones, too.");
    m.def("sweep_avals", pb::sweep_avals, "Forgets avals that nobody uses.");
    m.def("set_blas_control", [](uintptr_t get, uintptr_t set) {
        pb::set_blas_control(reinterpret_cast<int (*)()>(get), reinterpret_cast<void (*)(int)>(set));
    });
    m.def("blas_begin", pb_blas_begin);
    m.def("blas_end", pb_blas_end);
    m.def("standalone_archive", standalone_archive,
          "The static library that exported programs are linked with; empty where there is none.");
}
