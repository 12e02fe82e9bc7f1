// Large collective operations that go on beside work of the program: begun where the operands are there, waited for where
// the result is wanted.
//
// Messages of many bytes move in MPI's calls, and an operation of several steps goes from one to the next in ours; so a
// thread calls now and then, as long as there is something under way. Without it a process that works until the end of an
// operation holds up those that come to the end before.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <vector>

#include "collectives/steps.h"

namespace pb {

// Those that one run of a program has begun, and not ended.
class UnderWay {
  public:
    explicit UnderWay(const Communication& all) : all_(all) {}
    UnderWay(const UnderWay&) = delete;
    ~UnderWay();  // gives up on the processes if there are any left

    // For the local device at this place; the last to come begins the operation. False if it cannot.
    bool begin(size_t place, int64_t site, const void* in, void* out);
    // Waits; one device calls it, when all of them have come. False if it cannot be done.
    bool end(int64_t site, const std::function<bool()>& interrupted);
    // What can be done without waiting; the caller holds the processes' mutex.
    void advance();

  private:
    struct Operation {
        int64_t site;
        size_t came = 0;
        std::vector<const void*> in;
        std::vector<void*> out;
        std::deque<Work> groups;  // to which the steps refer
        std::vector<Steps> steps;
    };
    Operation& at(int64_t site);

    const Communication& all_;
    std::list<Operation> operations_;
};

}  // namespace pb
