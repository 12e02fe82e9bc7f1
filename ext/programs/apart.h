// Work on a thread of its own while the main thread, which started it, waits and hears signals.
//
// Sorts and LAPACK calls take seconds and cannot be stopped. A program that makes such calls runs apart: when a signal
// handler raises (Ctrl-C), the caller goes on at once, and the task goes on by itself until it can end. So a task must
// own all that it reads and writes.
//
// Measured: after Ctrl-C the caller goes on after 0.02 s (an svd of 2000 x 2000 took 6 s to raise). Starting the thread
// takes 20 to 40 us. So only programs in which a call of a library may take more than some 10 ms run apart
// (`emit.has_long_calls`), and none with callbacks of the user's, as these may go by their thread.
#pragma once
#include <Python.h>

namespace pb {

class Task {
  public:
    virtual ~Task() = default;  // GIL held
    virtual void work() = 0;    // on the thread of its own, without the GIL; must not throw
    // Nobody wants the result any more. GIL held, from the main thread, while `work` runs or after it.
    virtual void abandon() = 0;
};

enum class Apart {
    done,         // the task has run and is still the caller's
    interrupted,  // an error is set; the task, abandoned, is not the caller's any more: it is deleted when it has ended
    no_thread,    // the system gives no thread: nothing has happened
};

// Runs a task. From the main thread, with the GIL, which is released meanwhile.
Apart run_apart(Task* task);

}  // namespace pb
