#include "programs/progress.h"

#include <mutex>

#include "programs/host_call.h"
#include "threads/chunks.h"

namespace pb {

std::atomic<const Frame*> shown_frame{nullptr};

namespace {

std::atomic<bool> is_watched{false};
// Guards what follows, and changes of shown_frame; the thread of that frame alone changes the steps.
std::mutex progress_mutex;

struct {
    int64_t run = 0;  // counts runs of loops
    int64_t loop = 0, steps = 0;
    std::atomic<int64_t> step{0};
    PyObject* name = nullptr;  // of the program; borrowed while it runs
} now;

void note(const Frame* frame, int64_t step, int64_t steps, int64_t loop) {
    if (shown_frame.load(std::memory_order_relaxed) == frame && loop == now.loop &&
        step >= now.step.load(std::memory_order_relaxed))
        return now.step.store(step, std::memory_order_relaxed);
    if (frame->team && frame->device) return;
    std::lock_guard<std::mutex> guard(progress_mutex);
    const Frame* shown = shown_frame.load(std::memory_order_relaxed);
    if (shown && shown != frame) return;
    if (!shown || loop != now.loop || step < now.step.load()) ++now.run;
    shown_frame.store(frame, std::memory_order_relaxed);
    now.loop = loop;
    now.step.store(step);
    now.steps = steps;
    now.name = frame->name;
}

PyObject* watch_progress(PyObject*, PyObject* wanted) {
    int truth = PyObject_IsTrue(wanted);
    if (truth < 0) return nullptr;
    is_watched.store(truth);
    if (!truth) {
        std::lock_guard<std::mutex> guard(progress_mutex);
        shown_frame.store(nullptr);
    }
    Py_RETURN_NONE;
}

PyObject* read_progress(PyObject*, PyObject*) {
    std::lock_guard<std::mutex> guard(progress_mutex);
    bool running = shown_frame.load() != nullptr;
    return Py_BuildValue("(LLLLOO)", static_cast<long long>(now.run), static_cast<long long>(now.loop),
                         static_cast<long long>(now.step.load()), static_cast<long long>(now.steps),
                         running ? Py_True : Py_False, running && now.name ? now.name : Py_None);
}

PyMethodDef progress_functions[] = {
    {"watch_progress", watch_progress, METH_O, "watch_progress(wanted)\n--\n\nWhether loops say how far they are."},
    {"read_progress", read_progress, METH_NOARGS,
     "read_progress()\n--\n\n(run, loop, step, steps, running, name) of the loop that runs, or ran last."},
    {nullptr},
};

}  // namespace

void end_progress(const Frame* frame) {
    std::lock_guard<std::mutex> guard(progress_mutex);
    if (shown_frame.load(std::memory_order_relaxed) == frame) shown_frame.store(nullptr, std::memory_order_relaxed);
}

bool add_progress(PyObject* module) { return PyModule_AddFunctions(module, progress_functions) == 0; }

}  // namespace pb

extern "C" int pb_step(int64_t step, int64_t steps, int64_t loop) {
    using namespace pb;
    if (is_watched.load(std::memory_order_relaxed))
        if (auto* frame = static_cast<const Frame*>(current_frame)) note(frame, step, steps, loop);
    return pb_interrupt_pending();
}
