"""Work on chunks in several processes, results in order, a bounded number of them in flight."""
import collections
import concurrent.futures.process
import multiprocessing
import os
import signal

from ..errors import DataError

IN_FLIGHT = 3  # chunks for each process
WORK = None


def begin():
    """In a process of the pool. It was forked, so that it has WORK; Ctrl-C is for the one that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def call(chunk):
    return WORK(chunk)


def in_order(work, chunks, processes):
    """work(chunk) of each chunk, in the order of chunks. The first that raises ends it, in the order of chunks too."""
    global WORK
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread each, and forks that do not wait for threads of the library
    if processes == 1:
        yield from map(work, chunks)
        return
    WORK = work
    pool = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), begin)
    waiting = collections.deque()
    try:
        pool.submit(os.getpid).result()  # all are forked here, before threads of readers are
        for chunk in chunks:
            waiting.append(pool.submit(call, chunk))
            while len(waiting) >= IN_FLIGHT * processes or waiting and waiting[0].done():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except concurrent.futures.process.BrokenProcessPool:
        raise DataError(f"one of {processes} processes was ended from outside (by want of memory, perhaps); fewer need less: --processes=1", 74) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        WORK = None
