#include "programs/spans.h"

#include <time.h>

#include <mutex>
#include <string>
#include <vector>

#include "programs/host_call.h"
#include "ref.h"
#include "threads/chunks.h"

namespace pb {

std::atomic<bool> spans_wanted{false};

namespace {

// A trace of a minute of short calls has about so many; what comes later is counted and not kept.
constexpr size_t kMost = 1 << 20;

struct Ran {
    std::string name;
    const char* kind;
    unsigned long thread;
    int64_t began, ended;
};
struct Kernel {
    int64_t program, kernel;
    int device;
    unsigned long thread;
    int64_t began, ended;
};

std::mutex spans_mutex;  // guards what follows
std::vector<Ran> runs;
std::vector<Kernel> kernels;
int64_t lost = 0;

thread_local int64_t kernel_began = 0;

int64_t clock_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

template <class T>
void keep(std::vector<T>& list, T note) noexcept {
    std::lock_guard<std::mutex> guard(spans_mutex);
    try {
        if (list.size() < kMost) return list.push_back(std::move(note));
    } catch (const std::bad_alloc&) {
    }
    ++lost;
}

PyObject* record_spans(PyObject*, PyObject* wanted) {
    int truth = PyObject_IsTrue(wanted);
    if (truth < 0) return nullptr;
    spans_wanted.store(truth);
    Py_RETURN_NONE;
}

PyObject* take_spans(PyObject*, PyObject*) {
    std::vector<Ran> ran;
    std::vector<Kernel> found;
    int64_t missing;
    {
        std::lock_guard<std::mutex> guard(spans_mutex);
        ran.swap(runs);
        found.swap(kernels);
        missing = lost;
        lost = 0;
    }
    Ref first = Ref::steal(PyList_New(Py_ssize_t(ran.size()))), second = Ref::steal(PyList_New(Py_ssize_t(found.size())));
    if (!first || !second) return nullptr;
    for (size_t i = 0; i < ran.size(); ++i) {
        const Ran& r = ran[i];
        PyObject* entry = Py_BuildValue("(sskLL)", r.name.c_str(), r.kind, r.thread, static_cast<long long>(r.began),
                                        static_cast<long long>(r.ended));
        if (!entry) return nullptr;
        PyList_SET_ITEM(first.get(), Py_ssize_t(i), entry);
    }
    for (size_t i = 0; i < found.size(); ++i) {
        const Kernel& k = found[i];
        PyObject* entry = Py_BuildValue("(LLikLL)", static_cast<long long>(k.program), static_cast<long long>(k.kernel),
                                        k.device, k.thread, static_cast<long long>(k.began),
                                        static_cast<long long>(k.ended));
        if (!entry) return nullptr;
        PyList_SET_ITEM(second.get(), Py_ssize_t(i), entry);
    }
    return Py_BuildValue("(OOL)", first.get(), second.get(), static_cast<long long>(missing));
}

PyMethodDef spans_functions[] = {
    {"record_spans", record_spans, METH_O, "record_spans(wanted)\n--\n\nWhether runs and kernels are written down."},
    {"take_spans", take_spans, METH_NOARGS,
     "take_spans()\n--\n\n(runs, kernels, lost): what was written down since the last time, and how many were too many."},
    {nullptr},
};

}  // namespace

int64_t Span::now() { return clock_ns(); }

void Span::note() const {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);  // the run may have failed
    const char* name = PyUnicode_AsUTF8(name_);
    try {
        keep(runs, Ran{name ? name : "?", kind_, PyThread_get_thread_ident(), began_, clock_ns()});
    } catch (const std::bad_alloc&) {
    }
    PyErr_Restore(type, value, traceback);
}

bool add_spans(PyObject* module) { return PyModule_AddFunctions(module, spans_functions) == 0; }

}  // namespace pb

extern "C" int pb_span(int64_t program, int64_t kernel, int64_t edge) {
    using namespace pb;
    if (!spans_wanted.load(std::memory_order_relaxed)) return 0;
    if (edge == 0) {
        kernel_began = clock_ns();
        return 0;
    }
    int64_t ended = clock_ns();
    const auto* frame = static_cast<const Frame*>(current_frame);
    keep(kernels, Kernel{program, kernel, frame && frame->team ? int(frame->device) : 0, PyThread_get_thread_ident(),
                         kernel_began, ended});
    return 0;
}
