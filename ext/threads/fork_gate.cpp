#include "threads/fork_gate.h"

#include <chrono>
#include <thread>

#include "gil.h"

namespace pb {
namespace {

// Guarded by the GIL.
int running = 0;  // calls, of all threads
int holders = 0;  // threads that are about to fork
thread_local int own = 0;      // calls of this thread, which a fork by itself does not wait for
thread_local bool holds = false;

void sleep_without_gil() {
    PyThreadState* state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    restore_thread(state);
}

void enter() {
    while (holders && !holds && !own) sleep_without_gil();
    ++running;
    ++own;
}

void leave() {
    --running;
    --own;
}

PyObject* enter_library(PyObject*, PyObject*) {
    enter();
    Py_RETURN_NONE;
}

PyObject* leave_library(PyObject*, PyObject*) {
    leave();
    Py_RETURN_NONE;
}

PyObject* hold_libraries(PyObject*, PyObject* seconds) {
    double most = PyFloat_AsDouble(seconds);
    if (most == -1 && PyErr_Occurred()) return nullptr;
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(most);
    ++holders;
    holds = true;
    while (running > own && std::chrono::steady_clock::now() < until) sleep_without_gil();
    Py_RETURN_NONE;
}

PyObject* release_libraries(PyObject*, PyObject*) {
    if (holds) --holders;
    holds = false;
    Py_RETURN_NONE;
}

PyObject* release_in_child(PyObject*, PyObject*) {
    holders = 0;
    holds = false;
    running = own;
    Py_RETURN_NONE;
}

PyMethodDef fork_gate_functions[] = {
    {"enter_library", enter_library, METH_NOARGS, "enter_library()\n--\n\nForks wait from now on."},
    {"leave_library", leave_library, METH_NOARGS, "leave_library()\n--\n\nForks need not wait any more."},
    {"hold_libraries", hold_libraries, METH_O,
     "hold_libraries(seconds, /)\n--\n\nWaits until no other thread is in a library, at most so long, and keeps them out."},
    {"release_libraries", release_libraries, METH_NOARGS, "release_libraries()\n--\n\nLets threads into libraries again."},
    {"release_libraries_in_child", release_in_child, METH_NOARGS,
     "release_libraries_in_child()\n--\n\nThe same in the child of a fork."},
    {nullptr},
};

}  // namespace

LibraryCall::LibraryCall(bool counts) : counts_(counts) {
    if (counts_) enter();
}

LibraryCall::~LibraryCall() {
    if (!counts_) return;
    --running;
    if (is_own_) --own;
}

void LibraryCall::hand_over() {
    if (counts_ && is_own_) --own;
    is_own_ = false;
}

bool add_fork_gate(PyObject* module) { return PyModule_AddFunctions(module, fork_gate_functions) == 0; }

}  // namespace pb
