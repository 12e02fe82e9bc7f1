#include "post_order.h"

#include <structmember.h>

#include <cstdint>
#include <vector>

#include "ref.h"

namespace pb {
namespace {

// Addresses of objects: open addressing, at most half full.
class Seen {
  public:
    Seen() : table_(64, nullptr) {}

    bool has(PyObject* object) const { return table_[place(object)] == object; }

    void add(PyObject* object) {
        if (2 * ++count_ > table_.size()) grow();
        table_[place(object)] = object;
    }

  private:
    size_t place(PyObject* object) const {
        size_t mask = table_.size() - 1;
        size_t at = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u >> 32 & mask;
        while (table_[at] && table_[at] != object) at = (at + 1) & mask;
        return at;
    }

    void grow() {
        std::vector<PyObject*> old(2 * table_.size(), nullptr);
        old.swap(table_);
        for (PyObject* object : old) {
            if (object) table_[place(object)] = object;
        }
    }

    std::vector<PyObject*> table_;
    size_t count_ = 0;
};

// Where instances of a class hold the slot `name`; 0 with an error set if it has none.
Py_ssize_t slot_offset(PyObject* cls, const char* name) {
    Ref descriptor = Ref::steal(PyObject_GetAttrString(cls, name));
    if (!descriptor) return 0;
    if (!Py_IS_TYPE(descriptor.get(), &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "post_order: %s of %R is not a slot", name, cls);
        return 0;
    }
    return reinterpret_cast<PyMemberDescrObject*>(descriptor.get())->d_member->offset;
}

struct Waiting {
    PyObject* expr;
    Py_ssize_t next;  // the operand to look at
};

// Borrowed; null for a slot that was never filled.
PyObject* slot(PyObject* object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

PyObject* post_order(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyTuple_Check(args[0]) || !PyType_Check(args[1]) || !PyType_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "post_order: expected a tuple of expressions and the classes Op and Load");
        return nullptr;
    }
    auto* op = reinterpret_cast<PyTypeObject*>(args[1]);
    auto* load = reinterpret_cast<PyTypeObject*>(args[2]);
    Py_ssize_t args_at = slot_offset(args[1], "args");
    Py_ssize_t index_at = args_at ? slot_offset(args[2], "index") : 0;
    if (!index_at) return nullptr;
    Seen seen;
    std::vector<PyObject*> order;  // borrowed: the roots hold them all
    std::vector<Waiting> stack;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[0]); ++k) {
        PyObject* root = PyTuple_GET_ITEM(args[0], k);
        if (seen.has(root)) continue;
        stack.push_back({root, 0});
        while (!stack.empty()) {
            Waiting& top = stack.back();
            PyObject* operand = nullptr;
            if (Py_IS_TYPE(top.expr, op)) {
                PyObject* operands = slot(top.expr, args_at);
                if (!operands || !PyTuple_Check(operands)) {
                    PyErr_SetString(PyExc_TypeError, "post_order: args of an expression are not a tuple");
                    return nullptr;
                }
                while (top.next < PyTuple_GET_SIZE(operands) && !operand) {
                    PyObject* each = PyTuple_GET_ITEM(operands, top.next++);
                    if (!seen.has(each)) operand = each;
                }
            } else if (Py_IS_TYPE(top.expr, load) && top.next++ == 0) {
                PyObject* index = slot(top.expr, index_at);
                if (index && !seen.has(index)) operand = index;
            }
            if (operand) {
                stack.push_back({operand, 0});
            } else {
                seen.add(top.expr);
                order.push_back(top.expr);
                stack.pop_back();
            }
        }
    }
    PyObject* result = PyTuple_New(Py_ssize_t(order.size()));
    if (!result) return nullptr;
    for (size_t k = 0; k < order.size(); ++k) PyTuple_SET_ITEM(result, k, Py_NewRef(order[k]));
    return result;
}

PyMethodDef post_order_functions[] = {
    {"post_order", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(post_order)), METH_FASTCALL,
     "post_order(roots, op, load)\n--\n\nEvery expression reachable from `roots`, once each, operands before users."},
    {nullptr},
};

}  // namespace

bool add_post_order(PyObject* module) { return PyModule_AddFunctions(module, post_order_functions) == 0; }

}  // namespace pb
