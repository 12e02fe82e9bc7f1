// Owning references to Python objects, for code written with the C API.
#pragma once
#include <Python.h>
#include <utility>

namespace pb {

// Holds one reference (or none) and gives it back at the end of the scope. The GIL must be held for every operation.
class Ref {
  public:
    Ref() = default;
    // Takes over a new reference; null means that the call which made it failed.
    static Ref steal(PyObject* object) {
        Ref r;
        r.object_ = object;
        return r;
    }
    static Ref borrow(PyObject* object) {
        Py_XINCREF(object);
        return steal(object);
    }
    Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }
    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    PyObject* object_ = nullptr;
};

}  // namespace pb
