// Arguments that a program may overwrite: a donated array gives its memory to a result.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "programs/executable.h"
#include "ref.h"

namespace pb {

// Whether the memory of argument `index` may become that of a result: an array that has it for itself and has any.
// `arrays` has null for arguments that are not arrays.
inline bool may_take_over(const Program& p, int64_t index, Array* const* arrays) {
    Array* a = arrays[index];
    if (!a || !is_exclusive(a) || a->info->nbytes == 0) return false;
    for (Array* constant : p.constants)
        if (constant == a) return false;
    return true;
}

// Whether each donated array is passed once; else false with JaxRuntimeError set. Only a program knows what may become of
// its memory, so that a second use of it is a mistake. Equal arrays are found by sorting: a training step donates hundreds.
inline bool check_donated_once(const Program& p, PyObject* name, Array* const* arrays) {
    std::vector<std::pair<const Array*, int64_t>> all;
    all.reserve(p.in.size());
    for (size_t i = 0; i < p.in.size(); ++i)
        if (arrays[i]) all.emplace_back(arrays[i], int64_t(i));
    std::sort(all.begin(), all.end());
    for (size_t first = 0, end; first < all.size(); first = end) {
        for (end = first + 1; end < all.size() && all[end].first == all[first].first;) ++end;
        if (end == first + 1) continue;
        for (int64_t i : p.donate) {
            if (arrays[i] != all[first].first) continue;
            int64_t other = all[first].second == i ? all[first + 1].second : all[first].second;
            Ref module = Ref::steal(PyImport_ImportModule("pullback.util.errors"));
            Ref type = module ? Ref::steal(PyObject_GetAttrString(module.get(), "JaxRuntimeError")) : Ref();
            if (type)
                PyErr_Format(type.get(),
                             "INVALID_ARGUMENT: Attempt to use an array that is donated twice in one call: program '%U' "
                             "gets %S as arguments %lld (donated) and %lld; pass a copy of it.",
                             name, arrays[i]->info->aval, static_cast<long long>(i), static_cast<long long>(other));
            return false;
        }
    }
    return true;
}

// A new array of `info` (one use taken over) with the memory of `donor`, which is deleted by that. Null on failure.
inline Array* take_over(AvalInfo* info, Array* donor) {
    Array* result = new_array_over(info, donor->data, nullptr);
    if (result) {  // the donor has ceased to be the owner; its own reference to the memory must go
        donor->data = nullptr;
        donor->deleted = true;
    }
    return result;
}

// Deletes the donated arrays, as a run of the program does even if it fails.
inline void delete_donated(const Program& p, Array* const* arrays) {
    for (int64_t i : p.donate)
        if (Array* a = arrays[i]; a && !a->deleted) delete_data(a);
}

}  // namespace pb
