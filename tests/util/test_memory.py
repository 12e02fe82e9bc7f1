import sys
import threading

from pullback.util.memory import make_room


def test_the_oldest_goes_first():
    memory = dict.fromkeys("abcd")
    make_room(memory, 5)
    assert list(memory) == ["a", "b", "c", "d"]
    make_room(memory, 3)
    assert list(memory) == ["c", "d"]
    make_room({}, 1)


def test_threads_may_share_a_memory():
    memory, errors = {}, []

    def work(k):
        try:
            for i in range(60_000):
                make_room(memory, 3)
                memory[k, i] = i
        except RuntimeError as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    make_room(memory, 3)
    assert len(memory) == 2
