#include "calls/operators.h"


#include "arrays/array.h"
#include "arrays/indexing.h"
#include "ref.h"
#include "calls/trace_state.h"

namespace pb {
namespace {

enum Operator {
    ADD,
    RADD,
    SUB,
    RSUB,
    MUL,
    RMUL,
    TRUEDIV,
    RTRUEDIV,
    FLOORDIV,
    RFLOORDIV,
    MOD,
    RMOD,
    DIVMOD,
    RDIVMOD,
    POW,
    RPOW,
    MATMUL,
    RMATMUL,
    AND,
    RAND,
    OR,
    ROR,
    XOR,
    RXOR,
    LSHIFT,
    RLSHIFT,
    RSHIFT,
    RRSHIFT,
    LT,
    LE,
    EQ,
    NE,
    GT,
    GE,  // in the order of Py_LT ... Py_GE
    NEG,
    POS,
    ABS,
    INVERT,
    GETITEM,
    ITER,
    CONTAINS,
    TRANSPOSE,
    COUNT
};

const char* const names[COUNT] = {
    "add",  "radd",   "sub",     "rsub",    "mul",    "rmul",    "truediv", "rtruediv", "floordiv", "rfloordiv", "mod",
    "rmod", "divmod", "rdivmod", "pow",     "rpow",   "matmul",  "rmatmul", "and",      "rand",     "or",        "ror",
    "xor",  "rxor",   "lshift",  "rlshift", "rshift", "rrshift", "lt",      "le",       "eq",       "ne",        "gt",
    "ge",   "neg",    "pos",     "abs",     "invert", "getitem", "iter",    "contains", "transpose"};

PyObject* table[COUNT];

PyObject* call2(Operator op, PyObject* a, PyObject* b) {
    PyObject* function = table[op];
    if (!function) Py_RETURN_NOTIMPLEMENTED;
    Ref keep = Ref::borrow(function);  // set_operators may replace it during the call
    PyObject* arguments[3] = {nullptr, a, b};
    return PyObject_Vectorcall(function, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

PyObject* call1(Operator op, PyObject* a) {
    PyObject* function = table[op];
    if (!function) {
        PyErr_Format(PyExc_TypeError, "operator '%s' of Array has not been set", names[op]);
        return nullptr;
    }
    Ref keep = Ref::borrow(function);
    PyObject* arguments[2] = {nullptr, a};
    return PyObject_Vectorcall(function, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

// A slot is called as (array, anything) or as (anything, array); Python has already seen to the order of trying.
template <Operator op>
PyObject* binary(PyObject* a, PyObject* b) {
    return is_array(a) ? call2(op, a, b) : call2(Operator(op + 1), b, a);
}

template <Operator op>
PyObject* unary(PyObject* a) {
    return call1(op, a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
    if (modulus != Py_None) {
        PyErr_SetString(PyExc_TypeError, "pow() of an Array takes 2 arguments; a modulus is not supported");
        return nullptr;
    }
    return binary<POW>(a, b);
}

PyObject* compare(PyObject* a, PyObject* b, int op) { return call2(Operator(LT + op), a, b); }

PyObject* getitem(PyObject* a, PyObject* index) {
    if (!trace_state.tracing) {
        PyObject* found = get_item(as_array(a), index);
        if (found || PyErr_Occurred()) return found;
    }
    if (table[GETITEM]) return call2(GETITEM, a, index);
    PyErr_SetString(PyExc_TypeError, "operator 'getitem' of Array has not been set");
    return nullptr;
}

// What makes an array a sequence to C code, as NumPy's assignment of elements asks.
PyObject* item(PyObject* a, Py_ssize_t position) {
    Ref index = Ref::steal(PyLong_FromSsize_t(position));
    return index ? getitem(a, index.get()) : nullptr;
}

PyObject* iterate(PyObject* a) {
    if (as_array(a)->info->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
        return nullptr;
    }
    if (trace_state.tracing || is_spread(as_array(a))) return call1(ITER, a);
    Ref list = Ref::steal(rows(as_array(a)));
    return list ? PyObject_GetIter(list.get()) : nullptr;
}

int contains(PyObject* a, PyObject* item) {
    if (!table[CONTAINS]) {
        PyErr_SetString(PyExc_TypeError, "operator 'contains' of Array has not been set");
        return -1;
    }
    Ref found = Ref::steal(call2(CONTAINS, a, item));
    return found ? PyObject_IsTrue(found.get()) : -1;
}

int assign(PyObject*, PyObject* index, PyObject* value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError,
                        "JAX arrays are immutable: items cannot be deleted. Use jax.numpy.delete(x, idx) instead.");
        return -1;
    }
    Ref module = Ref::steal(PyImport_ImportModule("pullback.core.source"));
    if (!module) return -1;
    Ref text = Ref::steal(PyObject_CallMethod(module.get(), "item_assignment", "OO", index, value));
    if (text) PyErr_SetObject(PyExc_TypeError, text.get());
    return -1;
}

Py_ssize_t length(PyObject* self) {
    Array* a = as_array(self);
    if (a->info->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of unsized object");
        return -1;
    }
    return Py_ssize_t(a->info->dims[0]);
}

}  // namespace

PyObject* set_operators(PyObject*, PyObject* functions) {
    if (!PyDict_Check(functions)) {
        PyErr_SetString(PyExc_TypeError, "set_operators: expected a dict of functions by name");
        return nullptr;
    }
    Ref before = Ref::steal(PyDict_New());
    if (!before) return nullptr;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(functions, &position, &key, &value)) {
        int found = -1;
        for (int op = 0; op < COUNT; ++op)
            if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, names[op]) == 0) found = op;
        if (found < 0) {
            PyErr_Format(PyExc_TypeError, "set_operators: there is no operator %R", key);
            return nullptr;
        }
        if (value != Py_None && !PyCallable_Check(value)) {
            PyErr_Format(PyExc_TypeError, "set_operators: operator %R is %R; expected a callable or None", key, value);
            return nullptr;
        }
        if (PyDict_SetItem(before.get(), key, table[found] ? table[found] : Py_None) < 0) return nullptr;
        Py_XSETREF(table[found], value == Py_None ? nullptr : Py_NewRef(value));
    }
    return before.release();
}

PyObject* part_of(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 2 || count > 3 || !is_array(args[0])) {
        PyErr_SetString(PyExc_TypeError, "part_of: expected an Array, an index, and perhaps what comes there");
        return nullptr;
    }
    if (trace_state.tracing) Py_RETURN_NONE;
    Array* a = as_array(args[0]);
    PyObject* found = count == 2 ? get_part(a, args[1]) : with_part(a, args[1], args[2]);
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

PyObject* reversed_axes(PyObject* array, void*) {
    if (!trace_state.tracing) {
        PyObject* found = reversed(as_array(array));
        if (found || PyErr_Occurred()) return found;
    }
    return call1(TRANSPOSE, array);
}

void append_operators(std::vector<PyType_Slot>& slots) {
    auto add = [&](int slot, auto* function) { slots.push_back({slot, reinterpret_cast<void*>(function)}); };
    add(Py_nb_add, binary<ADD>);
    add(Py_nb_subtract, binary<SUB>);
    add(Py_nb_multiply, binary<MUL>);
    add(Py_nb_true_divide, binary<TRUEDIV>);
    add(Py_nb_floor_divide, binary<FLOORDIV>);
    add(Py_nb_remainder, binary<MOD>);
    add(Py_nb_divmod, binary<DIVMOD>);
    add(Py_nb_power, power);
    add(Py_nb_matrix_multiply, binary<MATMUL>);
    add(Py_nb_and, binary<AND>);
    add(Py_nb_or, binary<OR>);
    add(Py_nb_xor, binary<XOR>);
    add(Py_nb_lshift, binary<LSHIFT>);
    add(Py_nb_rshift, binary<RSHIFT>);
    add(Py_nb_negative, unary<NEG>);
    add(Py_nb_positive, unary<POS>);
    add(Py_nb_absolute, unary<ABS>);
    add(Py_nb_invert, unary<INVERT>);
    add(Py_tp_richcompare, compare);
    add(Py_tp_hash, PyObject_HashNotImplemented);
    add(Py_tp_iter, iterate);
    add(Py_mp_length, length);
    add(Py_mp_subscript, getitem);
    add(Py_mp_ass_subscript, assign);
    add(Py_sq_length, length);
    add(Py_sq_item, item);
    add(Py_sq_contains, contains);
}

}  // namespace pb
