// Calls from native programs back into Python, and the interruption of programs by Ctrl-C.
//
// Every run of a program has a Frame, which its parallel loops' threads see as `current_frame`. What goes wrong in a
// call into Python is stored there, the program returns a nonzero code, and whoever ran it raises the stored exception.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace pb {

class Team;

struct HostRecord {
    PyObject* function;  // strong; called with a tuple of `count` integers, or a foreign function
    int64_t count;
};

struct Frame {
    const std::vector<HostRecord*>* host_calls = nullptr;  // of the program, by index
    bool interruptible = false;
    std::atomic<bool> interrupted{false};
    PyObject* exception = nullptr;  // strong or null; the first that was raised; guarded by the GIL
    void* outer = nullptr;          // the frame that was current before
    Team* team = nullptr;           // the devices that run the program, if it runs on several at once
    PyObject* name = nullptr;       // borrowed or null: the program's, for those who watch it
    int device = 0;                 // the number of the one that this frame's thread runs

    // Makes this frame current until it ends. GIL held. While an interruptible frame of the main thread is current,
    // SIGINT is also noticed by pb_interrupt_pending.
    Frame(const std::vector<HostRecord*>* calls, bool can_interrupt);
    // Frames that other threads will make current for a time: that of a run apart (apart.h), which stops when
    // `interrupted` says so, and a device's. GIL not needed.
    explicit Frame(const std::vector<HostRecord*>* calls);
    Frame(const std::vector<HostRecord*>* calls, Team* devices, int number);
    ~Frame();
    // Raises what the program's return code says: the stored exception, KeyboardInterrupt for code 2, else
    // RuntimeError.
    void raise(int code, const char* program);
};

bool on_main_thread();

// The number of runs that nobody wants any more and that still go on: teams of devices, and runs apart.
// pb_interrupt_pending looks closer if there are any.
extern std::atomic<int> abandoned_runs;

// register_host_call(function, count) -> address of a record; release_host_call(address)
bool add_host_calls(PyObject* module);

}  // namespace pb

extern "C" {
// Nonzero if the program that runs should stop because of Ctrl-C; it then returns 2. Cheap: one load if nothing has
// happened.
int pb_interrupt_pending(void);
// Takes the GIL and calls record->function((address, ...)); a foreign function is called without Python. Returns 0, or 1
// if it raised. From any thread of the program.
int pb_host_call(void* record, void** buffers);
// The same for callable number `index` of the program that runs.
int pb_host_call_index(int64_t index, void** buffers);
}
