#include "arrays/aval.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "hooks.h"
#include "ref.h"

namespace pb {
namespace {

// Entries without users stay, as the same aval is likely to come back; they are swept when the table has grown to this.
size_t sweep_at = 1 << 16;

std::unordered_map<PyObject*, AvalInfo*>& table() {
    static auto* table = new std::unordered_map<PyObject*, AvalInfo*>;
    return *table;
}

void destroy(AvalInfo* info) {
    Py_XDECREF(info->shape);
    Py_XDECREF(info->descr);
    Py_XDECREF(info->aval);
    delete info;
}

void sweep() {
    std::vector<AvalInfo*> unused;
    for (auto it = table().begin(); it != table().end();) {
        if (it->second->users == 0) {
            unused.push_back(it->second);
            it = table().erase(it);
        } else {
            ++it;
        }
    }
    sweep_at = std::max<size_t>(1 << 16, 2 * table().size());
    for (AvalInfo* info : unused) destroy(info);  // last: runs Python code of any kind
}

bool fill(AvalInfo* info, PyObject* aval) {
    Ref shape = Ref::steal(PyObject_GetAttrString(aval, "shape"));
    if (!shape) return false;
    Ref dtype = Ref::steal(PyObject_GetAttrString(aval, "dtype"));
    if (!dtype) return false;
    Ref weak = Ref::steal(PyObject_GetAttrString(aval, "weak_type"));
    if (!weak) return false;
    int is_weak = PyObject_IsTrue(weak.get());
    if (is_weak < 0) return false;
    if (!PyTuple_Check(shape.get()) || !PyArray_DescrCheck(dtype.get())) {
        PyErr_Format(PyExc_TypeError, "expected an aval with a tuple 'shape' and a numpy 'dtype'; got %R", aval);
        return false;
    }
    auto* descr = reinterpret_cast<PyArray_Descr*>(dtype.get());
    if (PyDataType_REFCHK(descr) || !PyArray_ISNBO(descr->byteorder)) {
        PyErr_Format(PyExc_TypeError, "arrays of dtype %R are not supported", descr);
        return false;
    }
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape.get());
    if (ndim > NPY_MAXDIMS) {
        PyErr_Format(PyExc_ValueError, "arrays have at most %d dimensions; got %zd", NPY_MAXDIMS, ndim);
        return false;
    }
    info->ndim = int(ndim);
    info->size = 1;
    bool empty = false;
    int64_t itemsize = PyDataType_ELSIZE(descr), bytes = itemsize;
    for (Py_ssize_t i = 0; i < ndim; ++i) {
        int64_t n = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.get(), i));
        if (n == -1 && PyErr_Occurred()) return false;
        if (n < 0) {
            PyErr_Format(PyExc_ValueError, "negative dimension in shape %R", shape.get());
            return false;
        }
        info->dims[i] = n;
        empty |= n == 0;
        int64_t count = n == 0 ? 1 : n;  // NumPy, too, refuses shapes that overflow without their zeros
        if (__builtin_mul_overflow(info->size, count, &info->size) || __builtin_mul_overflow(bytes, count, &bytes)) {
            PyErr_Format(PyExc_OverflowError, "an array of shape %R and dtype %R is too large", shape.get(), descr);
            return false;
        }
    }
    if (empty) info->size = bytes = 0;
    info->nbytes = bytes;
    info->weak = is_weak;
    info->users = 0;
    info->aval = Py_NewRef(aval);
    info->shape = shape.release();
    info->descr = reinterpret_cast<PyArray_Descr*>(dtype.release());
    return true;
}

AvalInfo* last_info = nullptr;  // the one that was asked for last; valid while it has not been swept

}  // namespace

void sweep_avals() {
    last_info = nullptr;
    sweep();
}

AvalInfo* aval_info(PyObject* aval) {
    if (last_info && last_info->aval == aval) return retain_info(last_info);
    auto found = table().find(aval);
    AvalInfo* info;
    if (found != table().end()) {
        info = found->second;
    } else {
        info = new AvalInfo{};
        if (!fill(info, aval)) {
            delete info;
            return nullptr;
        }
        if (table().size() >= sweep_at) sweep_avals();
        auto [place, inserted] = table().emplace(aval, info);
        if (!inserted) {  // the attribute reads above let another thread in
            destroy(info);
            info = place->second;
        }
    }
    last_info = info;
    return retain_info(info);
}

AvalInfo* info_of_shape(PyArray_Descr* descr, bool weak, int ndim, const npy_intp* dims) {
    constexpr size_t kPlaces = 1024;
    static AvalInfo* known[kPlaces];  // each counted as used
    uint64_t h = reinterpret_cast<uintptr_t>(descr) ^ (uint64_t(ndim) << 1 | weak);
    for (int d = 0; d < ndim; ++d) h = (h ^ uint64_t(dims[d])) * 0x9e3779b97f4a7c15;
    AvalInfo*& place = known[(h * 0x9e3779b97f4a7c15) >> 54];
    if (place && place->descr == descr && place->weak == weak && place->ndim == ndim &&
        PyArray_CompareLists(place->dims, dims, ndim))
        return retain_info(place);
    if (!hooks.make_aval) {
        hook_missing("make_aval");
        return nullptr;
    }
    Ref shape = Ref::steal(PyTuple_New(ndim));
    if (!shape) return nullptr;
    for (int d = 0; d < ndim; ++d) {
        PyObject* n = PyLong_FromSsize_t(dims[d]);
        if (!n) return nullptr;
        PyTuple_SET_ITEM(shape.get(), d, n);
    }
    Ref aval = Ref::steal(
        PyObject_CallFunctionObjArgs(hooks.make_aval, shape.get(), descr, weak ? Py_True : Py_False, nullptr));
    AvalInfo* info = aval ? aval_info(aval.get()) : nullptr;
    if (!info) return nullptr;
    AvalInfo* old = place;
    place = retain_info(info);
    if (old) release_info(old);
    return info;
}

}  // namespace pb
