#include "calls/trace_state.h"

namespace pb {

thread_local TraceState trace_state;
PyObject* process_token = nullptr;
PyObject* process_home = nullptr;
uint32_t traces_begun = 0;

namespace {

// The object that stands for all tokens equal to `token` (borrowed, lives for ever), or null if it is not hashable.
PyObject* intern(PyObject* token) {
    static PyObject* table = PyDict_New();
    return table ? PyDict_SetDefault(table, token, token) : nullptr;
}

PyObject* set_tracing(PyObject*, PyObject* value) {
    long tracing = PyLong_AsLong(value);
    if (tracing == -1 && PyErr_Occurred()) return nullptr;
    trace_state.tracing = tracing != 0;
    trace_state.remembers = tracing == 2;
    trace_state.watched = tracing == 3;
    Py_RETURN_NONE;
}

PyObject* is_tracing(PyObject*, PyObject*) { return PyBool_FromLong(trace_state.tracing && !trace_state.watched); }

PyObject* set_has_mesh(PyObject*, PyObject* value) {
    int has = PyObject_IsTrue(value);
    if (has < 0) return nullptr;
    trace_state.has_mesh = has;
    Py_RETURN_NONE;
}

PyObject* begin_trace(PyObject*, PyObject*) {
    traces_begun = (traces_begun + 1) & 0x7fffffff;
    return PyLong_FromUnsignedLong(traces_begun);
}

PyObject* asked_work(PyObject*, PyObject*) { return PyFloat_FromDouble(trace_state.asked_work); }

PyObject* set_process(PyObject*, PyObject* token) {
    PyObject* interned = intern(token);
    if (!interned) return nullptr;
    process_token = interned;
    Py_RETURN_NONE;
}

PyObject* set_thread(PyObject*, PyObject* token) {
    PyObject* interned = token == Py_None ? nullptr : intern(token);
    if (!interned && token != Py_None) return nullptr;
    trace_state.thread_token = interned;
    Py_RETURN_NONE;
}

PyObject* set_home(PyObject*, PyObject* args) {
    PyObject* process;
    PyObject* thread;
    int has = 0;
    if (!PyArg_ParseTuple(args, "OpO", &process, &has, &thread)) return nullptr;
    process_home = process == Py_None ? nullptr : intern(process);
    trace_state.has_home = has;
    trace_state.home = thread == Py_None ? nullptr : intern(thread);
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
}

PyObject* check_main(PyObject*, PyObject*) {
    if (!check_main_interpreter()) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef trace_state_functions[] = {
    {"check_main_interpreter", check_main, METH_NOARGS,
     "check_main_interpreter()\n--\n\nRaises ImportError in a subinterpreter."},
    {"set_tracing", set_tracing, METH_O,
     "set_tracing(active)\n--\n\nSays whether the calling thread traces, so that calls of jitted functions must go "
     "through Python. 2: and that the interpreter in force is given eager functions as jaxprs "
     "(transformed.h). 3: it does not trace, but calls are watched, and go through Python all the same."},
    {"is_tracing", is_tracing, METH_NOARGS,
     "is_tracing()\n--\n\nWhether the calling thread traces, as it said last by `set_tracing`."},
    {"set_has_mesh", set_has_mesh, METH_O,
     "set_has_mesh(active)\n--\n\nSays whether a mesh of devices is in force in the calling thread, on which results "
     "lie (placement.h)."},
    {"set_home", set_home, METH_VARARGS,
     "set_home(process, has, thread)\n--\n\nSays on which device new arrays lie that are committed to none (None: the "
     "first): in all threads that do not say it themselves, and in the calling one if it `has` an opinion."},
    {"begin_trace", begin_trace, METH_NOARGS,
     "begin_trace()\n--\n\nThe number of a new trace; arrays made from now on have at least that."},
    {"asked_work", asked_work, METH_NOARGS,
     "asked_work()\n--\n\nInside of a miss(): elements that calls like this one, of any size, have handled since the "
     "last one."},
    {"set_trace_context_token", set_process, METH_O,
     "set_trace_context_token(token)\n--\n\nSets the hashable object that stands for the process-wide configuration in "
     "the keys of "
     "call caches."},
    {"set_thread_context_token", set_thread, METH_O,
     "set_thread_context_token(token)\n--\n\nThe same for what the calling thread overrides (context managers); None "
     "for nothing."},
    {nullptr},
};

}  // namespace

bool check_main_interpreter() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return true;
    PyErr_SetString(PyExc_ImportError,
                    "pullback works in the main interpreter only; it cannot be imported in a subinterpreter");
    return false;
}

bool add_trace_state(PyObject* module) { return PyModule_AddFunctions(module, trace_state_functions) == 0; }

}  // namespace pb
