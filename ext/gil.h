// Entering Python from threads that may outlive the interpreter.
//
// When the interpreter shuts down, a daemon thread that asks for the GIL is ended by pthread_exit (up to Python 3.13),
// which unwinds its stack. Going through generated code, or through destructors that drop Python references without the
// GIL, this kills the process. So calls into Python that can wait for the GIL are made through `in_python`: the
// unwinding ends there, and the thread sleeps for good.
#pragma once
#include <Python.h>

#include <new>

namespace pb {

// Calls function(), which must not throw anything but std::bad_alloc.
template <typename Function>
auto in_python(Function&& function) {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (...) {
        while (true) ::pause();
    }
}

inline PyGILState_STATE take_gil() {
    return in_python([] { return PyGILState_Ensure(); });
}

inline void restore_thread(PyThreadState* state) {
    in_python([&] { PyEval_RestoreThread(state); });
}

}  // namespace pb
