#include "calls/transformed.h"

#include "gil.h"
#include "hooks.h"
#include "pytree/pytree.h"
#include "ref.h"
#include "calls/static_value.h"
#include "calls/trace_state.h"

namespace pb {
namespace {

PyObject* current = nullptr;  // the ContextVar; strong

PyObject *str_interpreter, *str_parent, *str_aval, *str_call;  // interned

// Whether a tracer belongs to an interpreter or to one of those around it: 1, 0, or -1 with an error set.
int is_of(PyObject* tracer, PyObject* interpreter) {
    Ref owner = Ref::steal(PyObject_GetAttr(tracer, str_interpreter));
    if (!owner) return -1;
    Ref at = Ref::borrow(interpreter);
    while (at.get() != Py_None) {
        if (at.get() == owner.get()) return 1;
        at = Ref::steal(PyObject_GetAttr(at.get(), str_parent));
        if (!at) return -1;
    }
    return 0;
}

struct Parts {
    Growable<PyObject*, 48> items;  // strong
    ~Parts() {
        for (size_t i = 0; i < items.size(); ++i) Py_DECREF(items[i]);
    }
    void add(PyObject* borrowed) { items.push(Py_NewRef(borrowed)); }
    bool add_static(PyObject* value) {
        Ref form = static_form(value);
        if (!form) return false;
        add(reinterpret_cast<PyObject*>(Py_TYPE(value)));
        items.push(form.release());
        return true;
    }
};

PyObject* as_tuple(Parts& parts) {
    PyObject* tuple = PyTuple_New(Py_ssize_t(parts.items.size()));
    for (size_t i = 0; tuple && i < parts.items.size(); ++i)
        PyTuple_SET_ITEM(tuple, Py_ssize_t(i), Py_NewRef(parts.items[i]));
    return tuple;
}

bool is_small(PyObject* integer) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    return !overflow && value >= INT32_MIN && value <= INT32_MAX;
}

// Reads the arguments: 1, 0 where there is no key, or -1 with an error set.
int read(const StaticArguments& statics, PyObject* const* args, size_t count, PyObject* names, PyObject* interpreter,
         Parts& key, Parts& leaves) {
    for (PyObject* token : {process_token, trace_state.thread_token}) {
        PyObject* address = PyLong_FromVoidPtr(token);  // interned for ever
        if (!address) return -1;
        key.items.push(address);
    }
    for (size_t i = 0; i < count; ++i) {
        PyObject* x = args[i];
        if (statics.has_position(i, count, x)) {
            if (!key.add_static(x)) return -1;
            continue;
        }
        if (is_array(x)) {
            key.add(as_array(x)->info->aval);
        } else if (PyFloat_CheckExact(x) || (PyLong_CheckExact(x) && is_small(x))) {
            key.add(reinterpret_cast<PyObject*>(Py_TYPE(x)));
        } else if (is_tracer(x)) {
            int ours = is_of(x, interpreter);
            if (ours != 1) return ours;
            PyObject* aval = PyObject_GetAttr(x, str_aval);
            if (!aval) return -1;
            key.items.push(aval);
        } else {
            return 0;
        }
        leaves.add(x);
    }
    Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t k = 0; k < keywords; ++k) {
        PyObject* name = PyTuple_GET_ITEM(names, k);
        if (!statics.has_name(name, args[count + size_t(k)])) return 0;
        key.add(name);
        if (!key.add_static(args[count + size_t(k)])) return -1;
    }
    return 1;
}

// What find(key, args, kwargs) gives.
PyObject* find(const Transformed& t, PyObject* key, PyObject* const* args, size_t count, PyObject* names) {
    Ref positional = Ref::steal(PyTuple_New(Py_ssize_t(count))), keywords = Ref::steal(PyDict_New());
    if (!positional || !keywords) return nullptr;
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, k), args[count + size_t(k)]) < 0) return nullptr;
    Ref function = Ref::borrow(t.find);
    return in_python([&] {
        return PyObject_CallFunctionObjArgs(function.get(), key, positional.get(), keywords.get(), nullptr);
    });
}

PyObject* result_of(PyObject* outs, PyObject* tree) {
    if (tree == reinterpret_cast<PyObject*>(&PyList_Type)) return Py_NewRef(outs);
    Ref held = Ref::steal(PySequence_Tuple(outs));  // unflattening may run Python code
    if (!held) return nullptr;
    Py_ssize_t count = PyTuple_GET_SIZE(held.get());
    if (tree == Py_None ? count != 1 : !pytree::is_treedef(tree))
        return PyErr_Format(PyExc_RuntimeError, "an interpreter's call gave %zd results of structure %R", count, tree);
    if (tree == Py_None) return Py_NewRef(PyTuple_GET_ITEM(held.get(), 0));
    std::vector<PyObject*> leaves;
    for (Py_ssize_t i = 0; i < count; ++i) leaves.push_back(PyTuple_GET_ITEM(held.get(), i));
    return pytree::unflatten(reinterpret_cast<pytree::PyTreeDefObject*>(tree), leaves.data(), count);
}

PyObject* set_variable(PyObject*, PyObject* variable) {
    if (!PyContextVar_CheckExact(variable))
        return PyErr_Format(PyExc_TypeError, "set_interpreter_variable: expected a ContextVar, got %R", variable);
    Ref before = Ref::steal(current);
    current = Py_NewRef(variable);
    Py_RETURN_NONE;
}

PyMethodDef transformed_functions[] = {
    {"set_interpreter_variable", set_variable, METH_O,
     "set_interpreter_variable(variable)\n--\n\nSays which ContextVar has the interpreter in force."},
    {nullptr},
};

}  // namespace

PyObject* call_transformed(const Transformed& t, const StaticArguments& statics, PyObject* const* args, size_t count,
                           PyObject* names) {
    PyObject* found = nullptr;
    if (!current || PyContextVar_Get(current, nullptr, &found) < 0) return nullptr;
    if (!found) return nullptr;
    Ref interpreter = Ref::steal(found);
    Parts parts, leaves;
    if (read(statics, args, count, names, interpreter.get(), parts, leaves) != 1) return nullptr;
    Ref key = Ref::steal(as_tuple(parts));
    if (!key) return nullptr;
    Ref known = Ref::borrow(PyDict_GetItemWithError(t.known, key.get()));
    if (!known && PyErr_Occurred()) {  // a static argument without a hash
        if (PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear();
        return nullptr;
    }
    if (known.get() == Py_None) return nullptr;
    if (!known || !PyTuple_CheckExact(known.get())) {
        known = Ref::steal(find(t, key.get(), args, count, names));
        if (!known || known.get() == Py_None) return nullptr;
    }
    if (!PyTuple_CheckExact(known.get()) || PyTuple_GET_SIZE(known.get()) != 2)
        return PyErr_Format(PyExc_TypeError, "transformed gave %R; expected (jaxpr, tree) or None", known.get());
    Ref values = Ref::steal(PyList_New(Py_ssize_t(leaves.items.size())));
    if (!values) return nullptr;
    for (size_t i = 0; i < leaves.items.size(); ++i)
        PyList_SET_ITEM(values.get(), Py_ssize_t(i), Py_NewRef(leaves.items[i]));
    PyObject* given[] = {interpreter.get(), PyTuple_GET_ITEM(known.get(), 0), values.get()};
    Ref outs = Ref::steal(in_python([&] { return PyObject_VectorcallMethod(str_call, given, 3, nullptr); }));
    return outs ? result_of(outs.get(), PyTuple_GET_ITEM(known.get(), 1)) : nullptr;
}

bool add_transformed(PyObject* module) {
    str_interpreter = PyUnicode_InternFromString("interpreter");
    str_parent = PyUnicode_InternFromString("parent");
    str_aval = PyUnicode_InternFromString("aval");
    str_call = PyUnicode_InternFromString("call");
    return str_interpreter && str_parent && str_aval && str_call &&
           PyModule_AddFunctions(module, transformed_functions) == 0;
}

}  // namespace pb
