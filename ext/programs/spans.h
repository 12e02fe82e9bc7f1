// When programs ran, and when each kernel in them: what pullback.profiler writes to its traces.
//
// Recorded are runs of programs and plans (Span), and kernels of programs that were compiled for it, which say where
// they begin and end (pb_span). Times are those of CLOCK_MONOTONIC in ns, which is also Python's perf_counter.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>

namespace pb {

extern std::atomic<bool> spans_wanted;

// A run of a program, from the construction to the end of the object. Costs a load where nothing is recorded.
class Span {
  public:
    // `name`: a string of Python's. GIL held, here and at the end.
    Span(PyObject* name, const char* kind) : name_(name), kind_(kind) {
        if (spans_wanted.load(std::memory_order_relaxed)) began_ = now();
    }
    ~Span() {
        if (began_) note();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    static int64_t now();
    void note() const;
    PyObject* name_;
    const char* kind_;
    int64_t began_ = 0;
};

// record_spans(bool), take_spans() -> (runs, kernels, lost)
bool add_spans(PyObject* module);

}  // namespace pb

extern "C" {
// Kernel number `kernel` of program number `program` begins (edge 0) or has ended (1). Gives 0.
int pb_span(int64_t program, int64_t kernel, int64_t edge);
}
