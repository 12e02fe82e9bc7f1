#include "arrays/indexing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arrays/allocator.h"
#include "programs/plan_loops.h"
#include "threads/chunks.h"
#include "ref.h"
#include "calls/trace_state.h"

namespace pb {
namespace {

constexpr npy_intp kPlainBytes = 1 << 16;  // transposes of more need tiles, which compiled code has

// What is taken by an array of more goes on the threads of the pool, so many bytes at a time, between which Ctrl-C is
// heard. Measured: 5e7 elements took 0.7 s, in which nobody heard it; on two cores 0.4.
constexpr npy_intp kTakenAtOnce = 1 << 23;
constexpr npy_intp kStridedBytes = 1 << 26;  // copies of more, of what is no block of memory, are compiled code's

// A part of an array while it is found.
struct Part {
    char* data;
    int ndim = 0;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    explicit Part(void* start) : data(static_cast<char*>(start)) {}  // the rest is not set: it is a kilobyte
    bool add(npy_intp length, npy_intp stride) {
        if (ndim == NPY_MAXDIMS) return false;
        dims[ndim] = length;
        strides[ndim++] = stride;
        return true;
    }
};

// The value of an index: a Python or NumPy integer, or an array of rank 0. False if it is none or too large.
bool read_index(PyObject* object, npy_intp* value) {
    if (PyLong_CheckExact(object)) {
        int overflow;
        *value = PyLong_AsLongAndOverflow(object, &overflow);
        return !overflow;
    }
    if (is_array(object)) {
        Array* a = as_array(object);
        if (a->info->ndim || a->deleted) return false;
        switch (a->info->descr->type_num) {
            case NPY_INT: return *value = *static_cast<npy_int*>(a->data), true;
            case NPY_LONG: return *value = *static_cast<npy_long*>(a->data), true;
            case NPY_UINT: return *value = *static_cast<npy_uint*>(a->data), true;
            default: return false;
        }
    }
    if (!PyArray_IsScalar(object, Integer)) return false;
    *value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (*value != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

inline npy_intp inside(npy_intp index, npy_intp length) {
    return std::clamp<npy_intp>(index < 0 ? index + length : index, 0, length - 1);
}

bool is_slice_part(PyObject* object) { return object == Py_None || PyLong_CheckExact(object); }

// Takes one item of the index. False if it is not known here. `strict`: so are integers outside.
bool take(Part& part, const AvalInfo* info, int& axis, npy_intp& step, PyObject* item, int skipped, bool strict) {
    auto stride_of = [&](int k) {
        npy_intp s = PyDataType_ELSIZE(info->descr);
        for (int d = info->ndim - 1; d > k; --d) s *= info->dims[d];
        return s;
    };
    if (item == Py_None) return part.add(1, 0);
    if (item == Py_Ellipsis) {
        for (int k = 0; k < skipped; ++k, ++axis)
            if (!part.add(info->dims[axis], stride_of(axis))) return false;
        return true;
    }
    npy_intp length = info->dims[axis];
    step = stride_of(axis);
    if (PySlice_Check(item)) {
        auto* slice = reinterpret_cast<PySliceObject*>(item);
        if (!is_slice_part(slice->start) || !is_slice_part(slice->stop) || !is_slice_part(slice->step)) return false;
        Py_ssize_t start, stop, by;
        if (PySlice_Unpack(item, &start, &stop, &by) < 0) {
            PyErr_Clear();
            return false;
        }
        npy_intp count = PySlice_AdjustIndices(length, &start, &stop, by);
        if (count) part.data += start * step;
        ++axis;
        return part.add(count, by * step);
    }
    npy_intp index;
    if (!read_index(item, &index) || length == 0) return false;
    const bool is_outside = index >= length || index < -length;
    if (is_outside && (strict || (index != npy_intp(int32_t(index)) && PyLong_CheckExact(item))))
        return false;  // perhaps an error
    part.data += inside(index, length) * step;
    ++axis;
    return true;
}

// The part that integers, slices, None and Ellipsis say, alone or in a tuple. False if one is not known here.
bool find_part(Part& part, const AvalInfo* info, PyObject* index, bool strict) {
    PyObject* const* items = &index;
    Py_ssize_t count = 1;
    if (PyTuple_CheckExact(index)) {
        items = reinterpret_cast<PyTupleObject*>(index)->ob_item;
        count = PyTuple_GET_SIZE(index);
    }
    int consumed = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (items[i] == Py_Ellipsis) ++ellipses;
        else if (items[i] != Py_None) ++consumed;
    }
    if (ellipses > 1 || consumed > info->ndim) return false;
    int axis = 0;
    npy_intp step = 0;
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!take(part, info, axis, step, items[i], info->ndim - consumed, strict)) return false;
    return ellipses || take(part, info, axis, step, Py_Ellipsis, info->ndim - consumed, strict);
}

// Two strided dimensions of elements that are moved as one Unit. NumPy's loops do one, and take as long to enter as ten
// elements take.
template <typename Unit>
void gather_plane(char* out, const char* in, const npy_intp* dims, const npy_intp* strides) {
    for (npy_intp i = 0; i < dims[0]; ++i, in += strides[0]) {
        const char* from = in;
        for (npy_intp j = 0; j < dims[1]; ++j, from += strides[1], out += sizeof(Unit)) memcpy(out, from, sizeof(Unit));
    }
}

// Copies strided memory to contiguous memory.
void gather(char* out, const Part& part, npy_intp itemsize) {
    // As few dimensions as visit the same elements in the same order.
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int n = 0;
    for (int d = 0; d < part.ndim; ++d) {
        if (part.dims[d] == 1) continue;
        if (n && strides[n - 1] == part.strides[d] * part.dims[d]) {
            dims[n - 1] *= part.dims[d];
            strides[n - 1] = part.strides[d];
        } else {
            dims[n] = part.dims[d];
            strides[n++] = part.strides[d];
        }
    }
    if (n == 2 && strides[1] != itemsize) {
        if (itemsize == 4) return gather_plane<uint32_t>(out, part.data, dims, strides);
        if (itemsize == 8) return gather_plane<uint64_t>(out, part.data, dims, strides);
        if (itemsize == 1) return gather_plane<uint8_t>(out, part.data, dims, strides);
        if (itemsize == 2) return gather_plane<uint16_t>(out, part.data, dims, strides);
    }
    StridedLoop* loop = copy_loop(itemsize);
    npy_intp inner = n ? dims[n - 1] : 1;
    npy_intp steps[2] = {n ? strides[n - 1] : itemsize, itemsize};
    npy_intp index[NPY_MAXDIMS];
    std::fill_n(index, n, 0);
    char* in = part.data;
    while (true) {
        char* data[2] = {in, out};
        loop(nullptr, data, &inner, steps, nullptr);
        out += inner * itemsize;
        int d = n - 2;
        for (; d >= 0; --d) {
            in += strides[d];
            if (++index[d] < dims[d]) break;
            in -= strides[d] * dims[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

bool is_contiguous(const Part& part, npy_intp itemsize) {
    npy_intp expected = itemsize;
    for (int d = part.ndim - 1; d >= 0; --d) {
        if (part.dims[d] != 1 && part.strides[d] != expected) return false;
        expected *= part.dims[d];
    }
    return true;
}

PyObject* finish(Array* a, const Part& part) {
    AvalInfo* info = info_of_shape(a->info->descr, a->info->weak, part.ndim, part.dims);
    if (!info) return nullptr;
    npy_intp itemsize = PyDataType_ELSIZE(info->descr);
    if (info->nbytes > kSharedBytes && info->nbytes * 4 >= a->info->nbytes && is_aligned(part.data) &&
        is_contiguous(part, itemsize))
        return reinterpret_cast<PyObject*>(new_array_part(info, a, part.data));
    Array* result = new_array(info);
    if (!result) return nullptr;
    result->device = Py_XNewRef(a->device);
    if (info->nbytes) gather(static_cast<char*>(result->data), part, itemsize);
    return reinterpret_cast<PyObject*>(result);
}

template <typename Index, typename Unit>
void take_elements(char* out, const char* in, const void* indices, npy_intp count, npy_intp length) {
    auto* index = static_cast<const Index*>(indices);
    for (npy_intp i = 0; i < count; ++i) {
        npy_intp k = inside(npy_intp(index[i]), length);
        memcpy(out + i * npy_intp(sizeof(Unit)), in + k * npy_intp(sizeof(Unit)), sizeof(Unit));
    }
}

template <typename Index>
void take_rows(char* out, const char* in, const void* indices, npy_intp count, npy_intp length, npy_intp bytes) {
    if (bytes == 4) return take_elements<Index, uint32_t>(out, in, indices, count, length);
    if (bytes == 8) return take_elements<Index, uint64_t>(out, in, indices, count, length);
    auto* index = static_cast<const Index*>(indices);
    for (npy_intp i = 0; i < count; ++i)
        memcpy(out + i * bytes, in + inside(npy_intp(index[i]), length) * bytes, size_t(bytes));
}

// x[indices] for an integer array in contiguous memory.
PyObject* take_by_array(Array* a, const void* indices, int type, int ndim, const npy_intp* dims) {
    const AvalInfo* info = a->info;
    if ((type != NPY_INT && type != NPY_LONG) || ndim == 0 || info->ndim == 0 || info->dims[0] == 0) return nullptr;
    if (ndim + info->ndim - 1 > NPY_MAXDIMS) return nullptr;
    npy_intp shape[NPY_MAXDIMS], count = 1;
    for (int d = 0; d < ndim; ++d) count *= shape[d] = dims[d];
    for (int d = 1; d < info->ndim; ++d) shape[ndim + d - 1] = info->dims[d];
    AvalInfo* found = info_of_shape(info->descr, info->weak, ndim + info->ndim - 1, shape);
    Array* result = found ? new_array(found) : nullptr;
    if (!result) return nullptr;
    result->device = Py_XNewRef(a->device);
    if (found->nbytes == 0) return reinterpret_cast<PyObject*>(result);
    auto* in = static_cast<const char*>(a->data);
    auto* out = static_cast<char*>(result->data);
    npy_intp bytes = info->nbytes / info->dims[0];
    const npy_intp length = info->dims[0];
    if (found->nbytes <= kTakenAtOnce) {
        if (type == NPY_INT) take_rows<npy_int>(out, in, indices, count, length, bytes);
        else take_rows<npy_long>(out, in, indices, count, length, bytes);
        return reinterpret_cast<PyObject*>(result);
    }
    auto some = [&](npy_intp begin, npy_intp end) {
        char* target = out + begin * bytes;
        if (type == NPY_INT)
            take_rows<npy_int>(target, in, static_cast<const npy_int*>(indices) + begin, end - begin, length, bytes);
        else take_rows<npy_long>(target, in, static_cast<const npy_long*>(indices) + begin, end - begin, length, bytes);
    };
    const npy_intp rows = std::max<npy_intp>(1, kTakenAtOnce / bytes), grain = std::max<npy_intp>(1, rows / 64);
    for (npy_intp begin = 0; begin < count; begin += rows) {
        if (PyErr_CheckSignals() < 0) {
            Py_DECREF(result);
            return nullptr;
        }
        parallel(std::min(rows, count - begin), grain,
                 [&](int64_t first, int64_t last) { some(begin + first, begin + last); });
    }
    return reinterpret_cast<PyObject*>(result);
}

// A Python number as an element of such an array, into `out`. False if it is none, or has no exact place there.
bool read_number(PyObject* value, const PyArray_Descr* descr, char* out) {
    const int type = descr->type_num;
    if (PyBool_Check(value) && type == NPY_BOOL) return *out = value == Py_True, true;
    if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AS_DOUBLE(value);
        if (type == NPY_DOUBLE) return memcpy(out, &number, 8), true;
        const float rounded = float(number);
        if (std::isinf(rounded) && !std::isinf(number)) return false;  // which NumPy warns of
        return type == NPY_FLOAT && (memcpy(out, &rounded, 4), true);
    }
    if (!PyLong_CheckExact(value)) return false;
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number != int32_t(number)) return false;
    auto exact = [&](auto element) {
        element = decltype(element)(number);
        memcpy(out, &element, sizeof element);
        return static_cast<long long>(element) == number;
    };
    switch (type) {
        case NPY_FLOAT: return exact(float()) || true;  // rounded
        case NPY_DOUBLE: return exact(double());
        case NPY_BYTE: return exact(int8_t());
        case NPY_SHORT: return exact(int16_t());
        case NPY_INT: return exact(int32_t());
        case NPY_LONG: return exact(int64_t());
        case NPY_UBYTE: return exact(uint8_t());
        case NPY_USHORT: return exact(uint16_t());
        case NPY_UINT: return number >= 0 && exact(uint32_t());
        case NPY_ULONG: return number >= 0 && exact(uint64_t());
        default: return false;
    }
}

// Copies contiguous memory of a shape that broadcasts to the part's there. False if it does not.
bool scatter(const Part& part, const char* in, int ndim, const npy_intp* dims, npy_intp itemsize) {
    if (ndim > part.ndim) return false;
    npy_intp steps[NPY_MAXDIMS], stride = itemsize;
    for (int d = part.ndim - 1, k = ndim - 1; d >= 0; --d, --k) {
        const npy_intp length = k < 0 ? 1 : dims[k];
        if (length != 1 && length != part.dims[d]) return false;
        steps[d] = length == 1 ? 0 : stride;
        stride *= length;
    }
    for (int d = 0; d < part.ndim; ++d)
        if (part.dims[d] == 0) return true;
    StridedLoop* loop = copy_loop(itemsize);
    const int last = part.ndim - 1;
    npy_intp inner = last < 0 ? 1 : part.dims[last];
    npy_intp strides[2] = {last < 0 ? 0 : steps[last], last < 0 ? 0 : part.strides[last]};
    npy_intp index[NPY_MAXDIMS];
    std::fill_n(index, part.ndim, 0);
    char* data[2] = {const_cast<char*>(in), part.data};
    while (true) {
        char* both[2] = {data[0], data[1]};
        loop(nullptr, both, &inner, strides, nullptr);
        int d = last - 1;
        for (; d >= 0; --d) {
            data[0] += steps[d], data[1] += part.strides[d];
            if (++index[d] < part.dims[d]) break;
            data[0] -= steps[d] * part.dims[d], data[1] -= part.strides[d] * part.dims[d];
            index[d] = 0;
        }
        if (d < 0) return true;
    }
}

}  // namespace

PyObject* get_part(Array* a, PyObject* index) {
    if (!check_not_deleted(a)) return nullptr;
    if (is_spread(a) || trace_state.has_mesh || !copy_loop(PyDataType_ELSIZE(a->info->descr))) return nullptr;
    Part part(a->data);
    return find_part(part, a->info, index, true) ? finish(a, part) : nullptr;
}

PyObject* with_part(Array* a, PyObject* index, PyObject* value) {
    if (!check_not_deleted(a)) return nullptr;
    AvalInfo* info = a->info;
    const npy_intp itemsize = PyDataType_ELSIZE(info->descr);
    if (is_spread(a) || trace_state.has_mesh || info->nbytes > kWrittenBytes || !copy_loop(itemsize)) return nullptr;
    char number[16];
    const char* in = number;
    int ndim = 0;
    const npy_intp* dims = nullptr;
    if (is_array(value)) {
        Array* v = as_array(value);
        if (!check_not_deleted(v)) return nullptr;
        if (v->info->descr != info->descr || (v->device && v->device != a->device)) return nullptr;
        in = static_cast<const char*>(v->data), ndim = v->info->ndim, dims = v->info->dims;
    } else if (!read_number(value, info->descr, number)) {
        return nullptr;
    }
    Part part(a->data);
    if (!find_part(part, info, index, true)) return nullptr;
    Array* result = new_array(retain_info(info));
    if (!result) return nullptr;
    result->device = Py_XNewRef(a->device);
    part.data = static_cast<char*>(result->data) + (part.data - static_cast<char*>(a->data));
    memcpy(result->data, a->data, size_t(info->nbytes));
    if (scatter(part, in, ndim, dims, itemsize)) return reinterpret_cast<PyObject*>(result);
    Py_DECREF(result);
    return nullptr;
}

PyObject* get_item(Array* a, PyObject* index) {
    if (!check_not_deleted(a)) return nullptr;
    const AvalInfo* info = a->info;
    if (is_spread(a) || trace_state.has_mesh || !copy_loop(PyDataType_ELSIZE(info->descr))) return nullptr;
    if (is_array(index) && as_array(index)->device) return nullptr;
    if (is_array(index) && as_array(index)->info->ndim) {
        Array* i = as_array(index);
        if (!check_not_deleted(i)) return nullptr;
        return take_by_array(a, i->data, i->info->descr->type_num, i->info->ndim, i->info->dims);
    }
    if (PyArray_CheckExact(index)) {
        auto* i = reinterpret_cast<PyArrayObject*>(index);
        if (!PyArray_IS_C_CONTIGUOUS(i) || !PyArray_ISALIGNED(i) || !PyArray_ISNBO(PyArray_DESCR(i)->byteorder))
            return nullptr;
        return take_by_array(a, PyArray_DATA(i), PyArray_TYPE(i), PyArray_NDIM(i), PyArray_DIMS(i));
    }
    Part part(a->data);
    if (!find_part(part, info, index, false)) return nullptr;
    if (info->nbytes > kStridedBytes) {
        const npy_intp itemsize = PyDataType_ELSIZE(info->descr);
        npy_intp bytes = itemsize;
        for (int d = 0; d < part.ndim; ++d) bytes *= part.dims[d];
        if (bytes > kStridedBytes && !is_contiguous(part, itemsize)) return nullptr;
    }
    return finish(a, part);
}

PyObject* reversed(Array* a) {
    if (!check_not_deleted(a)) return nullptr;
    const AvalInfo* info = a->info;
    if (is_spread(a) || info->nbytes > kPlainBytes || !copy_loop(PyDataType_ELSIZE(info->descr))) return nullptr;
    if (info->ndim < 2) return Py_NewRef(reinterpret_cast<PyObject*>(a));
    Part part(a->data);
    part.ndim = info->ndim;
    npy_intp stride = PyDataType_ELSIZE(info->descr);
    for (int d = info->ndim - 1, k = 0; d >= 0; --d, ++k) {
        part.dims[k] = info->dims[d];
        part.strides[k] = stride;
        stride *= info->dims[d];
    }
    return finish(a, part);
}

PyObject* rows(Array* a) {
    if (!check_not_deleted(a)) return nullptr;
    const AvalInfo* info = a->info;
    npy_intp n = info->dims[0], bytes = n ? info->nbytes / n : 0;
    Ref list = Ref::steal(PyList_New(n));
    if (!list) return nullptr;
    Part part(a->data);
    npy_intp stride = PyDataType_ELSIZE(info->descr);
    part.ndim = info->ndim - 1;
    for (int d = info->ndim - 1; d > 0; --d) {
        part.dims[d - 1] = info->dims[d];
        part.strides[d - 1] = stride;
        stride *= info->dims[d];
    }
    for (npy_intp i = 0; i < n; ++i, part.data += bytes) {
        PyObject* row = finish(a, part);
        if (!row) return nullptr;
        PyList_SET_ITEM(list.get(), i, row);
    }
    return list.release();
}

}  // namespace pb
