#include "calls/call_arguments.h"

#include <cstring>

#include "arrays/allocator.h"
#include "programs/executable.h"
#include "hooks.h"
#include "ref.h"

namespace pb {

PyObject* call_asarray(PyObject* leaf) {
    if (!hooks.asarray) return hook_missing("asarray");
    Ref hook = Ref::borrow(hooks.asarray);
    Ref array = Ref::steal(PyObject_CallOneArg(hook.get(), leaf));
    if (array && !is_array(array.get())) {
        PyErr_Format(PyExc_TypeError, "hook 'asarray' returned a %s; expected an Array", Py_TYPE(array.get())->tp_name);
        return nullptr;
    }
    return array.release();
}

namespace {

template <typename T>
bool put(Scratch* scratch, T value) {
    memcpy(scratch->bytes, &value, sizeof value);
    return true;
}

// Writes a Python or NumPy scalar as the program's dtype. False without an error if it is not one of the cases known
// here.
bool write_scalar(const Leaf& leaf, const PyArray_Descr* descr, Scratch* scratch) {
    PyObject* x = leaf.object;
    switch (leaf.kind) {
        case LeafKind::boolean:
            return descr->type_num == NPY_BOOL && put(scratch, npy_bool(x == Py_True));
        case LeafKind::integer: {
            int overflow;
            long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
            if (overflow) return false;
            if (descr->type_num == NPY_INT) return value == int(value) && put(scratch, int(value));
            return (descr->type_num == NPY_LONG || descr->type_num == NPY_LONGLONG) && PyDataType_ELSIZE(descr) == 8 &&
                   put(scratch, value);
        }
        case LeafKind::real:
            if (descr->type_num == NPY_FLOAT) return put(scratch, float(PyFloat_AS_DOUBLE(x)));
            return descr->type_num == NPY_DOUBLE && put(scratch, PyFloat_AS_DOUBLE(x));
        case LeafKind::complex: {
            Py_complex z = PyComplex_AsCComplex(x);
            if (descr->type_num == NPY_CFLOAT) {
                const float parts[2] = {float(z.real), float(z.imag)};
                memcpy(scratch->bytes, parts, sizeof parts);
                return true;
            }
            if (descr->type_num != NPY_CDOUBLE) return false;
            memcpy(scratch->bytes, &z, sizeof z);
            return true;
        }
        case LeafKind::numpy_scalar:
            if (descr->type_num == NPY_FLOAT && PyArray_IsScalar(x, Float))
                return put(scratch, PyArrayScalar_VAL(x, Float));
            if (descr->type_num == NPY_FLOAT && PyArray_IsScalar(x, Double))
                return put(scratch, float(PyArrayScalar_VAL(x, Double)));
            if (descr->type_num == NPY_DOUBLE && PyArray_IsScalar(x, Double))
                return put(scratch, PyArrayScalar_VAL(x, Double));
            if (descr->type_num == NPY_INT && PyArray_IsScalar(x, Int)) return put(scratch, PyArrayScalar_VAL(x, Int));
            return false;
        default:
            return false;
    }
}

}  // namespace

Arguments::Arguments(const Arguments& other) : Arguments(other.count) {
    for (size_t i = 0; i < count; ++i) {
        arrays[i] = other.arrays[i];
        data[i] = other.data[i];
        owners[i] = arrays[i] ? reinterpret_cast<PyObject*>(arrays[i]) : other.owners[i];
        if (owners[i]) {
            made.push(Py_NewRef(owners[i]));
        } else {
            scratch[i] = other.scratch[i];
            data[i] = &scratch[i];
        }
    }
}

bool Arguments::convert(size_t i, const Leaf& leaf, AvalInfo* info) {
    arrays[i] = nullptr;
    owners[i] = nullptr;
    if (leaf.kind == LeafKind::ndarray) {
        auto* x = reinterpret_cast<PyArrayObject*>(leaf.object);
        if (PyArray_TYPE(x) == info->descr->type_num && PyArray_IS_C_CONTIGUOUS(x) &&
            is_aligned(PyArray_DATA(x), Program::kInputAlignment)) {
            data[i] = PyArray_DATA(x);
            owners[i] = leaf.object;
            return true;
        }
        return hold(i, reinterpret_cast<PyObject*>(new_array_from_numpy(retain_info(info), x, false)));
    }
    if (write_scalar(leaf, info->descr, &scratch[i])) {
        data[i] = &scratch[i];
        return true;
    }
    if (leaf.kind == LeafKind::numpy_scalar) {
        Ref x = Ref::steal(PyArray_FromScalar(leaf.object, nullptr));
        return x && hold(i, reinterpret_cast<PyObject*>(new_array_from_numpy(
                                retain_info(info), reinterpret_cast<PyArrayObject*>(x.get()), false)));
    }
    Ref x = Ref::steal(call_asarray(leaf.object));
    if (!x) return false;
    if (as_array(x.get())->info->nbytes != info->nbytes) {
        PyErr_Format(PyExc_TypeError, "hook 'asarray' returned %S where the program takes %S",
                     as_array(x.get())->info->aval, info->aval);
        return false;
    }
    return hold(i, x.release());
}

bool Arguments::hold(size_t i, PyObject* array) {
    if (!array) return false;
    made.push(array);
    owners[i] = array;
    data[i] = as_array(array)->data;
    return true;
}

}  // namespace pb
