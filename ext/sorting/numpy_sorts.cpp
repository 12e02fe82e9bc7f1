#include "numpy_api.h"
#include "sorting/sort_keys.h"
#include "sorting/sorting.h"

namespace pb {

QuickSort quick_sorts[kF64 + 1] = {};

bool find_quick_sorts() {
    auto find = [](int type) {
        PyArray_Descr* descr = PyArray_DescrFromType(type);
        auto* sort = reinterpret_cast<QuickSort>(PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT]);
        Py_DECREF(descr);
        return sort;
    };
    quick_sorts[kU32] = find(NPY_UINT32);
    quick_sorts[kU64] = find(NPY_UINT64);
    quick_sorts[kI32] = find(NPY_INT32);
    quick_sorts[kI64] = find(NPY_INT64);
    quick_sorts[kF32] = find(NPY_FLOAT);
    quick_sorts[kF64] = find(NPY_DOUBLE);
    return true;
}

}  // namespace pb
