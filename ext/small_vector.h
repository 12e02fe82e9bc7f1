// A fixed number of plain values, on the stack if they are few.
#pragma once
#include <cstddef>
#include <memory>

namespace pb {

template <typename T, size_t N>
class SmallVector {
  public:
    explicit SmallVector(size_t size) : heap_(size > N ? new T[size] : nullptr), data_(heap_ ? heap_.get() : stack_) {}
    SmallVector(const SmallVector&) = delete;
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

  private:
    T stack_[N];  // not initialized
    std::unique_ptr<T[]> heap_;
    T* data_;
};

}  // namespace pb
