// How far the loop is that runs, for those who show it to the user.
//
// Programs say it where they ask for Ctrl-C (pb_step). Of runs at the same time the first is shown until it ends: calls
// back into Python may run programs of their own, and of several devices the first speaks for all.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>

namespace pb {

struct Frame;

// The frame whose loops are shown; null if nobody watches, or nothing runs.
extern std::atomic<const Frame*> shown_frame;

// The run of `frame` has ended. Called by every frame; cheap for those that are not shown.
void end_progress(const Frame* frame);
inline void leave_progress(const Frame* frame) {
    if (shown_frame.load(std::memory_order_relaxed) == frame) end_progress(frame);
}

// watch_progress(bool), read_progress() -> (run, loop, step, steps, running, name)
bool add_progress(PyObject* module);

}  // namespace pb

extern "C" {
// pb_interrupt_pending of loop number `loop` of the program, `step` of whose `steps` (0: nobody knows) are done.
int pb_step(int64_t step, int64_t steps, int64_t loop);
}
