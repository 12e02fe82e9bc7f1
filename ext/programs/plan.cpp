#include "programs/plan.h"

#include <chrono>
#include <cstring>

#include "gil.h"
#include "programs/plan_loops.h"
#include "ref.h"
#include "small_vector.h"

namespace pb {
namespace {

constexpr Py_ssize_t kMaxOperands = 64, kMaxRank = 64;

// What NumPy's capsule holds (documented at ufunc._get_strided_loop; stable since NumPy 1.24).
struct UfuncCallInfo {
    StridedLoop* strided_loop;
    void* context;
    void* auxdata;
    npy_bool requires_pyapi;
    npy_bool no_floatingpoint_errors;
};

bool read_numbers(PyObject* object, std::vector<npy_intp>& out) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        npy_intp n = PyLong_AsSsize_t(PyTuple_GET_ITEM(sequence.get(), i));
        if (n == -1 && PyErr_Occurred()) return false;
        out.push_back(n);
    }
    return true;
}

bool no_loop(PyObject* what) {
    PyErr_Format(PyExc_NotImplementedError, "Plan: there is no loop for %R", what);
    return false;
}

bool read_loop(PyObject* object, PlanStep& step) {
    if (PyCapsule_CheckExact(object)) {
        auto* info = static_cast<UfuncCallInfo*>(PyCapsule_GetPointer(object, "numpy_1.24_ufunc_call_info"));
        if (!info) return false;
        if (info->requires_pyapi) return no_loop(object);
        step.loop = info->strided_loop;
        step.context = info->context;
        step.aux = info->auxdata;
        step.owner = Py_NewRef(object);
        return true;
    }
    const char* name;
    PyObject *first, *second = nullptr;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "sO|O:Plan", &name, &first, &second)) return false;
    if (!strcmp(name, "convert") && second && PyArray_DescrCheck(first) && PyArray_DescrCheck(second)) {
        step.loop = convert_loop(reinterpret_cast<PyArray_Descr*>(first)->type_num,
                                 reinterpret_cast<PyArray_Descr*>(second)->type_num);
    } else if (second && PyArray_DescrCheck(first) && PyLong_Check(second)) {
        int bytes = int(PyLong_AsLong(second));
        if (bytes == -1 && PyErr_Occurred()) return false;
        const int type = reinterpret_cast<PyArray_Descr*>(first)->type_num;
        step.loop = strcmp(name, "product") ? reduction_loop(name, type, bytes) : product_loop(type, bytes);
    } else {
        npy_intp itemsize = PyLong_AsSsize_t(first);
        if (itemsize == -1 && PyErr_Occurred()) return false;
        if (!strcmp(name, "copy")) step.loop = copy_loop(itemsize);
        else if (!strcmp(name, "transpose")) step.loop = transpose_loop(itemsize);
        else if (!strcmp(name, "select")) step.loop = select_loop(itemsize);
    }
    return step.loop || no_loop(object);
}

bool read_loop_step(PyObject* tuple, PlanStep& step) {
    PyObject *loop, *dimensions, *strides, *outer, *operands;
    if (!PyArg_ParseTuple(tuple, "OOOOO!:Plan", &loop, &dimensions, &strides, &outer, &PyTuple_Type, &operands))
        return false;
    if (!read_loop(loop, step) || !read_numbers(dimensions, step.dimensions) || !read_numbers(strides, step.strides) ||
        !read_numbers(outer, step.outer))
        return false;
    step.operands = uint32_t(PyTuple_GET_SIZE(operands));
    step.rank = uint32_t(step.outer.size());
    for (Py_ssize_t k = 0; k < Py_ssize_t(step.operands); ++k) {
        Py_ssize_t base, offset;
        PyObject* steps;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(operands, k), "nnO:Plan", &base, &offset, &steps)) return false;
        step.bases.push_back(base);
        step.offsets.push_back(offset);
        if (!read_numbers(steps, step.outer_steps)) return false;
        if (step.outer_steps.size() != size_t(k + 1) * step.rank) {
            PyErr_SetString(PyExc_ValueError, "Plan: an operand has another number of outer strides than the step");
            return false;
        }
    }
    return true;
}

bool read_host_step(PyObject* tuple, PlanStep& step) {
    PyObject *function, *operands;
    unsigned outputs;
    if (!PyArg_ParseTuple(tuple, "OIO!:Plan", &function, &outputs, &PyTuple_Type, &operands)) return false;
    step.owner = Py_NewRef(function);
    step.outputs = outputs;
    step.operands = uint32_t(PyTuple_GET_SIZE(operands));
    for (Py_ssize_t k = 0; k < Py_ssize_t(step.operands); ++k) {
        Py_ssize_t base, offset;
        PyObject *shape, *strides, *dtype;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(operands, k), "nnOOO!:Plan", &base, &offset, &shape, &strides,
                              &PyArrayDescr_Type, &dtype))
            return false;
        step.bases.push_back(base);
        step.offsets.push_back(offset);
        step.shapes.emplace_back();
        step.steps.emplace_back();
        if (!read_numbers(shape, step.shapes.back()) || !read_numbers(strides, step.steps.back())) return false;
        step.descrs.push_back(reinterpret_cast<PyArray_Descr*>(Py_NewRef(dtype)));
    }
    return step.outputs <= step.operands;
}

void run_loop(const PlanStep& s, void** pointers) {
    char* data[kMaxOperands];
    for (uint32_t k = 0; k < s.operands; ++k) data[k] = static_cast<char*>(pointers[s.bases[k]]) + s.offsets[k];
    if (s.rank == 0) {
        s.loop(s.context, data, s.dimensions.data(), s.strides.data(), s.aux);
        return;
    }
    npy_intp index[kMaxRank] = {};
    char* now[kMaxOperands];
    while (true) {
        // Loops may move the pointers they are given.
        memcpy(now, data, s.operands * sizeof(char*));
        s.loop(s.context, now, s.dimensions.data(), s.strides.data(), s.aux);
        int d = int(s.rank) - 1;
        for (; d >= 0; --d) {
            if (++index[d] < s.outer[d]) {
                for (uint32_t k = 0; k < s.operands; ++k) data[k] += s.outer_steps[k * s.rank + d];
                break;
            }
            index[d] = 0;
            for (uint32_t k = 0; k < s.operands; ++k) data[k] -= s.outer_steps[k * s.rank + d] * (s.outer[d] - 1);
        }
        if (d < 0) return;
    }
}

PyObject* operand_array(const PlanStep& s, uint32_t k, void** pointers, bool writeable) {
    char* data = static_cast<char*>(pointers[s.bases[k]]) + s.offsets[k];
    Py_INCREF(s.descrs[k]);
    return PyArray_NewFromDescr(&PyArray_Type, s.descrs[k], int(s.shapes[k].size()), s.shapes[k].data(),
                                s.steps[k].data(), data, writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr);
}

// Calls the function with read-only arrays over the operands; writes what it gives into the results.
bool run_host(const PlanStep& s, void** pointers) {
    uint32_t inputs = s.operands - s.outputs;
    SmallVector<PyObject*, 16> arguments(inputs + 1);
    struct Release {
        SmallVector<PyObject*, 16>& items;
        uint32_t made = 0;
        ~Release() {
            while (made) Py_DECREF(items[made--]);
        }
    } release{arguments};
    for (uint32_t k = 0; k < inputs; ++k) {
        arguments[k + 1] = operand_array(s, k, pointers, false);
        if (!arguments[k + 1]) return false;
        release.made = k + 1;
    }
    Ref value = Ref::steal(in_python([&] {
        return PyObject_Vectorcall(s.owner, arguments.data() + 1, inputs | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    }));
    if (!value) return false;
    Ref values = s.outputs == 1 ? Ref::steal(PyTuple_Pack(1, value.get())) : Ref::steal(PySequence_Tuple(value.get()));
    if (!values) return false;
    if (PyTuple_GET_SIZE(values.get()) != Py_ssize_t(s.outputs)) {
        PyErr_Format(PyExc_RuntimeError, "a function of a plan gave %zd results; expected %u",
                     PyTuple_GET_SIZE(values.get()), s.outputs);
        return false;
    }
    for (uint32_t o = 0; o < s.outputs; ++o) {
        Ref target = Ref::steal(operand_array(s, inputs + o, pointers, true));
        if (!target || PyArray_CopyObject(reinterpret_cast<PyArrayObject*>(target.get()),
                                          PyTuple_GET_ITEM(values.get(), Py_ssize_t(o))) < 0)
            return false;
    }
    return true;
}

}  // namespace

Plan::~Plan() {
    for (PlanStep& step : steps) {
        Py_XDECREF(step.owner);
        for (PyArray_Descr* descr : step.descrs) Py_XDECREF(descr);
    }
}

std::unique_ptr<Plan> read_plan(PyObject* steps) {
    Ref sequence = Ref::steal(PySequence_Tuple(steps));
    if (!sequence) return nullptr;
    auto plan = std::make_unique<Plan>();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        PyObject* item = PyTuple_GET_ITEM(sequence.get(), i);
        if (!PyTuple_Check(item)) {
            PyErr_Format(PyExc_TypeError, "Plan: step %zd is %R; expected a tuple", i, item);
            return nullptr;
        }
        plan->steps.emplace_back();
        PlanStep& step = plan->steps.back();
        bool is_host = PyTuple_GET_SIZE(item) == 3;
        if (!(is_host ? read_host_step(item, step) : read_loop_step(item, step))) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "Plan: step %zd is malformed", i);
            return nullptr;
        }
        if (step.operands > kMaxOperands || step.rank > kMaxRank) {
            PyErr_Format(PyExc_NotImplementedError, "Plan: step %zd has too many operands or dimensions", i);
            return nullptr;
        }
        plan->has_host |= is_host;
    }
    return plan;
}

bool run_plan(const Plan& plan, void** pointers) {
    for (const PlanStep& step : plan.steps) {
        if (step.loop) {
            run_loop(step, pointers);
            continue;
        }
        const auto begin = std::chrono::steady_clock::now();
        if (!run_host(step, pointers)) return false;
        const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
        plan.host_ns.fetch_add(took.count(), std::memory_order_relaxed);
    }
    return true;
}

}  // namespace pb
