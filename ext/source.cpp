#include "source.h"

#include <frameobject.h>

#include "ref.h"

namespace pb {
namespace {

// 1, 0, or -1 with an error set.
int is_users_file(PyObject* is_users, PyObject* file) {
    PyObject* known = PyDict_GetItemWithError(is_users, file);
    if (known) return PyObject_IsTrue(known);
    if (PyErr_Occurred()) return -1;
    Ref asked = Ref::steal(PyObject_GetItem(is_users, file));
    return asked ? PyObject_IsTrue(asked.get()) : -1;
}

PyObject* calling_line(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyDict_Check(args[0]) || !PyContextVar_CheckExact(args[1]) || !PyType_Check(args[2]) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[2]), &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "calling_line: expected a dict, a ContextVar and a named tuple's class");
        return nullptr;
    }
    auto as_frame = [](const Ref& frame) { return reinterpret_cast<PyFrameObject*>(frame.get()); };
    Ref frame = Ref::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    while (frame) {
        Ref held = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(as_frame(frame))));
        auto* code = reinterpret_cast<PyCodeObject*>(held.get());
        int found = is_users_file(args[0], code->co_filename);
        if (found < 0) return nullptr;
        if (found) {
            auto* type = reinterpret_cast<PyTypeObject*>(args[2]);
            int at = PyFrame_GetLasti(as_frame(frame));
            int first = 0, from = 0, last = 0, to = 0;
            if (!PyCode_Addr2Location(code, at, &first, &from, &last, &to)) first = PyCode_Addr2Line(code, at);
            Ref line = Ref::steal(PyLong_FromLong(first));
            Ref column = Ref::steal(PyLong_FromLong(from < 0 ? 0 : from));
            Ref qualified = Ref::borrow(code->co_qualname);
            PyObject* scopes = nullptr;
            if (!line || !column || !qualified || PyContextVar_Get(args[1], nullptr, &scopes) < 0) return nullptr;
            Ref names = Ref::steal(scopes ? scopes : Py_NewRef(Py_None));
            Ref result = Ref::steal(type->tp_alloc(type, 6));
            if (!result) return nullptr;
            PyTuple_SET_ITEM(result.get(), 0, Py_NewRef(code->co_filename));
            PyTuple_SET_ITEM(result.get(), 1, line.release());
            PyTuple_SET_ITEM(result.get(), 2, Py_NewRef(code->co_name));
            PyTuple_SET_ITEM(result.get(), 3, names.release());
            PyTuple_SET_ITEM(result.get(), 4, column.release());
            PyTuple_SET_ITEM(result.get(), 5, qualified.release());
            return result.release();
        }
        frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(as_frame(frame))));
    }
    Py_RETURN_NONE;
}

PyMethodDef source_functions[] = {
    {"calling_line", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(calling_line)), METH_FASTCALL,
     "calling_line(is_users, scopes, kind)\n--\n\nThe innermost frame in a file of the user's as kind(file, line, "
     "function, scopes, column, qualified name), or None."},
    {nullptr},
};

}  // namespace

bool add_source(PyObject* module) { return PyModule_AddFunctions(module, source_functions) == 0; }

}  // namespace pb
