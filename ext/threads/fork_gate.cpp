#include "threads/fork_gate.h"

#include <chrono>
#include <thread>

#include "gil.h"
#include "threads/float_mode.h"

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

PyObject* call_library(PyObject*, PyObject* args) {
    PyObject *function, *operands, *params;
    if (!PyArg_ParseTuple(args, "OO!O!:call_library", &function, &PyTuple_Type, &operands, &PyDict_Type, &params))
        return nullptr;
    enter();
    PyObject* result;
    {
        FlushDenormals flush;
        result = PyObject_Call(function, operands, params);
    }
    leave();
    return result;
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
    {"call_library", call_library, METH_VARARGS,
     "call_library(function, operands, params, /)\n--\n\nfunction(*operands, **params) as in a program: results that would be "
     "denormal are zero, and forks wait."},
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
