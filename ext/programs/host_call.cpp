#include "programs/host_call.h"

#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <chrono>
#include <new>
#include <unordered_set>

#include "threads/chunks.h"
#include "threads/device_team.h"
#include "gil.h"
#include "programs/foreign.h"
#include "programs/progress.h"
#include "ref.h"
#include "threads/thread_pool.h"

namespace pb {
namespace {

std::atomic<bool> sigint_seen{false};
struct sigaction python_action;  // what our handler passes signals on to
int interruptible_depth = 0;     // main thread only

void on_sigint(int number, siginfo_t* info, void* context) {
    sigint_seen.store(true, std::memory_order_relaxed);
    if (python_action.sa_flags & SA_SIGINFO) python_action.sa_sigaction(number, info, context);
    else if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN)
        python_action.sa_handler(number);
}

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_sigint;
}

// Ours is in place only while a program that asks for it runs, so that a process which does not compute has its own
// handler.
void watch_sigint() {
    if (interruptible_depth++) return;
    sigint_seen.store(false, std::memory_order_relaxed);
    struct sigaction now;
    if (sigaction(SIGINT, nullptr, &now) || is_ours(now)) return;
    if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
    python_action = now;
    struct sigaction ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_sigint;
    sigaction(SIGINT, &ours, nullptr);
}

void unwatch_sigint() {
    if (--interruptible_depth) return;
    struct sigaction now;
    // A callback may have installed another handler meanwhile: that one stays.
    if (sigaction(SIGINT, nullptr, &now) == 0 && is_ours(now)) sigaction(SIGINT, &python_action, nullptr);
}

// Moves the current error into the frame; reports it as unraisable if there is none, or if another one came first.
void store_error(Frame* frame, PyObject* context) {
    if (!frame || frame->exception) {
        PyErr_WriteUnraisable(context);
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    frame->exception = value;
}

// A C function of the user's: Python is asked only if it failed.
int call_native(HostRecord* record, Frame* frame, void** buffers) {
    std::string wrong = call_foreign(record->function, buffers, frame ? frame->device : 0);
    if (wrong.empty()) return 0;
    PyGILState_STATE gil = take_gil();
    raise_foreign(wrong);
    store_error(frame, record->function);
    PyGILState_Release(gil);
    return 1;
}

int call_host(HostRecord* record, void** buffers) {
    auto* frame = static_cast<Frame*>(current_frame);
    if (is_foreign(record->function)) return call_native(record, frame, buffers);
    PyGILState_STATE gil = take_gil();
    int code = 1;
    {
        Ref arguments = Ref::steal(PyTuple_New(Py_ssize_t(record->count)));
        bool ok = bool(arguments);
        for (int64_t i = 0; ok && i < record->count; ++i) {
            PyObject* address = PyLong_FromVoidPtr(buffers[i]);
            ok = address != nullptr;
            if (ok) PyTuple_SET_ITEM(arguments.get(), i, address);
        }
        Ref function = Ref::borrow(record->function);
        Ref result =
            ok ? Ref::steal(in_python([&] { return PyObject_CallOneArg(function.get(), arguments.get()); })) : Ref();
        if (result) code = 0;
        else store_error(frame, function.get());
    }
    PyGILState_Release(gil);
    return code;
}

std::unordered_set<HostRecord*>& records() {
    static auto* records = new std::unordered_set<HostRecord*>;
    return *records;
}

PyObject* register_host_call(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"function", "count", nullptr};
    PyObject* function;
    Py_ssize_t count;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On:register_host_call", const_cast<char**>(names), &function,
                                     &count))
        return nullptr;
    if (!PyCallable_Check(function) || count < 0) {
        PyErr_Format(PyExc_TypeError, "register_host_call: expected a callable and a count of buffers; got %R and %zd",
                     function, count);
        return nullptr;
    }
    auto* record = new HostRecord{Py_NewRef(function), count};
    records().insert(record);
    return PyLong_FromVoidPtr(record);
}

PyObject* release_host_call(PyObject*, PyObject* address) {
    auto* record = static_cast<HostRecord*>(PyLong_AsVoidPtr(address));
    if (!record && PyErr_Occurred()) return nullptr;
    if (!records().erase(record)) {
        PyErr_Format(PyExc_ValueError, "release_host_call: %R is not the address of a registered call", address);
        return nullptr;
    }
    Py_DECREF(record->function);
    delete record;
    Py_RETURN_NONE;
}

PyMethodDef host_call_functions[] = {
    {"register_host_call", reinterpret_cast<PyCFunction>(register_host_call), METH_VARARGS | METH_KEYWORDS,
     "register_host_call(function, count)\n--\n\nThe address of a record for pb_host_call: `function` will get a tuple "
     "of `count` "
     "addresses."},
    {"release_host_call", release_host_call, METH_O,
     "release_host_call(record)\n--\n\nFrees a record; no program that uses it may run again."},
    {nullptr},
};

}  // namespace

std::atomic<int> abandoned_runs{0};

bool on_main_thread() {
#ifdef __linux__
    static thread_local const bool is_main = syscall(SYS_gettid) == getpid();
#else
    static thread_local const bool is_main = pthread_main_np();
#endif
    return is_main;
}

Frame::Frame(const std::vector<HostRecord*>* calls) : host_calls(calls), interruptible(true), outer(this) {}

Frame::Frame(const std::vector<HostRecord*>* calls, bool can_interrupt)
    : host_calls(calls), interruptible(can_interrupt && on_main_thread()), outer(current_frame) {
    current_frame = this;
    if (interruptible) watch_sigint();
}

Frame::Frame(const std::vector<HostRecord*>* calls, Team* devices, int number)
    : host_calls(calls), outer(this), team(devices), device(number) {}

Frame::~Frame() {
    leave_progress(this);
    if (outer != this) {
        if (interruptible) unwatch_sigint();
        current_frame = outer;
    }
    Py_XDECREF(exception);
}

void Frame::raise(int code, const char* program) {
    if (exception) {
        PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(exception));
        PyErr_Restore(Py_NewRef(type), exception, PyException_GetTraceback(exception));
        exception = nullptr;
    } else if (code == 2) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    } else {
        PyErr_Format(PyExc_RuntimeError, "program '%s' failed with code %d", program, code);
    }
}

bool add_host_calls(PyObject* module) { return PyModule_AddFunctions(module, host_call_functions) == 0; }

}  // namespace pb

extern "C" {

void pb_parallel_for(void (*body)(void*, int64_t, int64_t), void* ctx, int64_t n, int64_t grain) {
    using namespace pb;
    auto* frame = static_cast<Frame*>(current_frame);
    if (!frame || !(frame->interruptible || frame->team)) return parallel_for(body, ctx, n, grain);
    parallel(n, grain, [=](int64_t begin, int64_t end) {
        constexpr auto kLong = std::chrono::microseconds(500);
        for (int64_t piece = std::max<int64_t>(grain, 1); begin < end && !pb_interrupt_pending();) {
            const int64_t stop = end - begin > piece ? begin + piece : end;
            const auto started = std::chrono::steady_clock::now();
            body(ctx, begin, stop);
            if (std::chrono::steady_clock::now() - started < kLong) piece *= 2;
            begin = stop;
        }
    });
}

int pb_interrupt_pending(void) {
    using namespace pb;
    bool pressed = sigint_seen.load(std::memory_order_relaxed);
    if (!pressed && !abandoned_runs.load(std::memory_order_relaxed)) return 0;
    auto* frame = static_cast<Frame*>(current_frame);
    if (!frame) return 0;
    if (frame->team && frame->team->is_abandoned()) return 1;
    if (!frame->interruptible) return 0;
    // Python's handlers run on the main thread only; the other threads of a loop wait for what it says.
    if (pressed && on_main_thread() && !frame->interrupted.load(std::memory_order_relaxed)) {
        PyGILState_STATE gil = take_gil();
        sigint_seen.store(false, std::memory_order_relaxed);
        if (PyErr_CheckSignals() < 0) {
            store_error(frame, nullptr);
            frame->interrupted.store(true, std::memory_order_relaxed);
            sigint_seen.store(true, std::memory_order_relaxed);  // for the other threads
        }
        PyGILState_Release(gil);
    }
    return frame->interrupted.load(std::memory_order_relaxed);
}

int pb_host_call(void* record, void** buffers) {
    return pb::call_host(static_cast<pb::HostRecord*>(record), buffers);
}

int pb_host_call_index(int64_t index, void** buffers) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    if (!frame || !frame->host_calls || index < 0 || size_t(index) >= frame->host_calls->size()) return 3;
    return pb::call_host((*frame->host_calls)[size_t(index)], buffers);
}

}  // extern "C"
