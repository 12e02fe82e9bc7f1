#include "calls/static_value.h"

#include <cmath>

#include "numpy_api.h"

namespace pb {
namespace {

// The negative zeros of a float (1) or a complex number (1 and 2), Python's or NumPy's.
int negative_zeros(PyObject* value) {
    auto is_one = [](double x) { return x == 0 && std::signbit(x); };
    if (PyComplex_Check(value) || PyArray_IsScalar(value, ComplexFloating)) {
        const Py_complex number = PyComplex_AsCComplex(value);
        if (number.real == -1 && PyErr_Occurred()) PyErr_Clear();
        return is_one(number.real) | is_one(number.imag) << 1;
    }
    if (!PyFloat_Check(value) && (!PyArray_IsScalar(value, Generic) || PyArray_IsScalar(value, Flexible))) return 0;
    const double number = PyFloat_AsDouble(value);  // also of bfloat16 and its like, which are NumPy's only as Generic
    if (number == -1 && PyErr_Occurred()) PyErr_Clear();  // what is no number: == decides alone
    return is_one(number);
}

// Whether two of the type are == where their items are, as named tuples are; a class may say otherwise.
bool is_plain_tuple(PyObject* value) {
    return PyTuple_Check(value) && Py_TYPE(value)->tp_richcompare == PyTuple_Type.tp_richcompare;
}

PyMethodDef static_value_functions[] = {
    {"static_form", [](PyObject*, PyObject* value) { return static_form(value).release(); }, METH_O,
     "static_form(value)\n--\n\nAn object that is == to that of another value of the same type where both mean the same "
     "program: the types of a tuple's items and the signs of zeros count."},
    {nullptr},
};

}  // namespace

bool add_static_form(PyObject* module) { return PyModule_AddFunctions(module, static_value_functions) == 0; }

int same_static(PyObject* a, PyObject* b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b) || negative_zeros(a) != negative_zeros(b)) return 0;
    if (!is_plain_tuple(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return 0;
    if (Py_EnterRecursiveCall(" in the comparison of static arguments")) return -1;
    int same = 1;
    for (Py_ssize_t i = 0; same == 1 && i < PyTuple_GET_SIZE(a); ++i)
        same = same_static(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    Py_LeaveRecursiveCall();
    return same;
}

Ref static_form(PyObject* value) {
    const int negative = negative_zeros(value);
    if (!is_plain_tuple(value))
        return negative ? Ref::steal(Py_BuildValue("OOi", Py_TYPE(value), value, negative)) : Ref::borrow(value);
    if (Py_EnterRecursiveCall(" in a static argument")) return {};
    Ref form = Ref::steal(PyTuple_New(2 * PyTuple_GET_SIZE(value)));
    for (Py_ssize_t i = 0; form && i < PyTuple_GET_SIZE(value); ++i) {
        PyObject* item = PyTuple_GET_ITEM(value, i);
        Ref of_item = static_form(item);
        if (!of_item) form = {};
        else {
            PyTuple_SET_ITEM(form.get(), 2 * i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(item))));
            PyTuple_SET_ITEM(form.get(), 2 * i + 1, of_item.release());
        }
    }
    Py_LeaveRecursiveCall();
    return form;
}

}  // namespace pb
