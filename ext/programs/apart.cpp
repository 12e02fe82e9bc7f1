#include "programs/apart.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>

#include "gil.h"
#include "threads/start.h"

namespace pb {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);  // between two looks at signals

// What the two threads share; it outlives both.
struct Control {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false, abandoned = false;  // guarded by mutex
};

std::atomic<int> left_alone{0};  // abandoned tasks that still run
thread_local bool is_apart = false;
std::terminate_handler terminate_before = nullptr;

// A Python extension that asks for the GIL in a destructor while the interpreter ends cannot be unwound (gil.h), and all
// would be killed: SciPy's Fourier transforms are so. The abandoned thread sleeps until the process is gone.
[[noreturn]] void sleep_or_terminate() {
    while (is_apart && left_alone.load() > 0) ::pause();
    if (terminate_before) terminate_before();
    abort();
}

// Libraries that an abandoned task is in give their memory back when the process ends, so it ends without that.
[[maybe_unused]] void leave(int status, void*) {
    if (left_alone.load() == 0) return;
    fflush(nullptr);
    _exit(status);
}

void prepare_for_the_end() {
    static std::once_flag once;
    std::call_once(once, [] {
#ifdef __GLIBC__
        on_exit(leave, nullptr);
#endif
        terminate_before = std::set_terminate(sleep_or_terminate);
        pthread_atfork(nullptr, nullptr, [] { left_alone.store(0); });  // the child has none of the threads
    });
}

void work(Task* task, Control& control) {
    is_apart = true;
    task->work();
    {
        std::lock_guard lock(control.mutex);
        control.done = true;
        control.changed.notify_all();
        if (!control.abandoned) return;
    }
    PyGILState_STATE gil = take_gil();
    delete task;
    PyGILState_Release(gil);
    left_alone.fetch_sub(1);
}

}  // namespace

Apart run_apart(Task* task) {
    auto control = std::make_shared<Control>();
    if (!start_thread("pullback-apart", [task, control] { work(task, *control); })) return Apart::no_thread;
    while (true) {
        PyThreadState* state = PyEval_SaveThread();
        bool done;
        {
            std::unique_lock lock(control->mutex);
            done = control->changed.wait_for(lock, kLook, [&] { return control->done; });
        }
        restore_thread(state);
        if (done) return Apart::done;
        if (PyErr_CheckSignals() == 0) continue;
        prepare_for_the_end();
        {
            std::lock_guard lock(control->mutex);
            task->abandon();
            if (!control->done) {
                control->abandoned = true;
                left_alone.fetch_add(1);
                return Apart::interrupted;
            }
        }
        delete task;  // it ended while the handler ran
        return Apart::interrupted;
    }
}

}  // namespace pb
