// Calls of eager functions under a transformation of concrete values (trace_state.remembers): from the second of a kind
// on the interpreter in force is given the function as a jaxpr, without any Python before.
//
// The key of a kind is a tuple: the configuration, then for each positional argument its aval (arrays and live tracers of
// the interpreter in force or of those around it), its type (a float, an int of 32 bits), or its type and value (static
// arguments), then name, type and value of the keyword arguments, which must be static. Other calls have no key.
#pragma once
#include <Python.h>

#include "calls/call_key.h"

namespace pb {

// What a function knows of its jaxprs. The form of results is their tree, None for a single one, the type `list`. Both members are strong.
struct Transformed {
    PyObject* known = nullptr;  // dict: key -> (jaxpr, form of its results); None: there is none
    PyObject* find = nullptr;   // (key, args, kwargs) -> the same, for other values or none; it enters what it finds
};

// The result of the call. Null without an error: the function itself must run.
PyObject* call_transformed(const Transformed& t, const StaticArguments& statics, PyObject* const* args, size_t count,
                           PyObject* names);

// Where the interpreter in force is found: set_interpreter_variable(ContextVar). False on failure.
bool add_transformed(PyObject* module);

}  // namespace pb
