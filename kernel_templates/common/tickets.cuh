#pragma once

// Work of two phases in one launch, of which the second reads what all of the first gives: no barrier of the grid, so
// that no launch needs all of its blocks to run at the same time. Blocks draw items in their order, all of the first
// phase before any of the second. One that waits for the first phase has drawn of the second, so all items of the first
// were drawn before, by blocks that run and wait for nobody. What the first phase gives says by itself that it is there
// (common/awaited.cuh), so that nobody fences; where that is much to look at, items that are done are counted, too, and
// blocks look at one number until then.
//
// `counters`: kTicketCounters ints, zero before the first launch: items drawn, items of the first phase that are done,
// blocks that are through, and which copy of what is handed on the next launch uses. The last block to leave sets all
// but that to zero.

constexpr int kTicketCounters = 4;

// What thread 0 of a block tells the others, in shared memory.
struct Draws {
  int item[2];  // drawn, in turns
  int copy;     // of what is handed on, 0 or 1, that this launch uses
};

// AHEAD: a block draws its next item when it begins one, else when it has read all of that. COUNTS: items of the first
// phase that are done are counted, for wait_for_first.
template <bool AHEAD, bool COUNTS = true>
struct Tickets {
  int* counters;
  int first_phase;       // items of the first phase, with those before
  int items;             // of all phases, some of the second phase
  int items_before = 0;  // that come before the first phase, of a phase of their own

  // The block's next item, in thread 0; the others get 0.
  __device__ __forceinline__ int draw() const { return threadIdx.x == 0 ? atomicAdd(counters, 1) : 0; }

  // The copy that this launch uses, in thread 0. To be called before the first draw, which may be the block's last:
  // when all blocks have drawn their last, the number is that of the next launch.
  __device__ __forceinline__ int look_up_copy() const {
    return threadIdx.x == 0 ? static_cast<const volatile int*>(counters)[3] : 0;
  }

  __device__ __forceinline__ bool is_before(int item) const { return item < items_before; }
  __device__ __forceinline__ bool in_first(int item) const { return item < first_phase; }
  __device__ __forceinline__ bool exists(int item) const { return item < items; }

  // Says that so many items of the first phase are done, whose results the block's threads have handed on; all must
  // take part, and none waits for what another of the block hands on before.
  __device__ __forceinline__ void tell_done(int count) const {
    __syncthreads();
    if (COUNTS && threadIdx.x == 0) {
      atomicAdd(counters + 1, count);
    }
  }

  // In a block that has drawn an item of the second phase: waits until all of the first is done, though its results may
  // still be on their way; all threads must take part.
  __device__ __forceinline__ void wait_for_first() const {
    if (threadIdx.x == 0) {
      const volatile int* const done = counters + 1;
      while (*done != first_phase) {
      }
    }
    __syncthreads();
  }

  // What a block does of both phases, from `draws.item[0]` on, which all of its threads know; `draws` is in shared
  // memory.
  // `make_first()` and `make_second()` make a phase, whose `begin(item)` has an item's first loads begin their way,
  // `work(item, turn)` leaves its sums in the place of that turn, 0 or 1, and `finish(item, turn)` stores what comes of
  // them, behind a barrier: with two places one barrier an item is enough. `receive(order)` follows the begin of a
  // phase's first item; in the second phase it waits for what the first gives, by wait_for_first or by looking at that.
  // Items of the second phase count from 0. All threads must take part.
  template <typename MakeFirst, typename MakeSecond>
  __device__ __forceinline__ void run(Draws& draws, const MakeFirst& make_first, const MakeSecond& make_second) const {
    int item = draws.item[0];
    int turn = 0;
    if (in_first(item)) {
      auto phase = make_first();
      tell_done(work_through(draws, phase, item, turn, first_phase));
    }
    // Each block draws once what does not exist, when it waits for nothing any more: the last to do so is through with
    // the counters, as all others are.
    item = run_second<false>(draws, item, turn, make_second);
    if (threadIdx.x == 0 && item == items + static_cast<int>(gridDim.x) - 1) {
      clear(draws.copy);
    }
  }

  // The same where there are at least as many blocks as items of the first phase, of which a block does one at most, by
  // `work_once(item)`: the first phase is no loop, whose invariants would take registers. A block that is through with
  // its item while others have not been drawn leaves the second phase to those that draw them, which have not begun.
  // The block of the last one does not find any, so that the second phase is always done; and as before, who waits
  // knows that all items of the first were drawn by blocks that run. Items before the first phase, where there are
  // some, are one more phase, which `make_before()` makes: `work_once` waits for what it needs of their results by
  // these, and gets its item counted from 0.
  template <typename MakeBefore, typename Work, typename MakeSecond>
  __device__ __forceinline__ void run_once(Draws& draws, const MakeBefore& make_before, const Work& work_once,
                                           const MakeSecond& make_second) const {
    int item = draws.item[0];
    int turn = 0;
    if (is_before(item)) {
      auto phase = make_before();
      (void)work_through(draws, phase, item, turn, items_before);
      __syncthreads();  // a thread that waits for what another of the block hands on would keep that from it
    }
    run_from(draws, item, turn, work_once, make_second);
  }
  template <typename Work, typename MakeSecond>
  __device__ __forceinline__ void run_once(Draws& draws, const Work& work_once, const MakeSecond& make_second) const {
    run_from(draws, draws.item[0], 0, work_once, make_second);
  }

 private:
  // Does an item and what is drawn behind it, as long as that lies before `end`; gives how many they were. `item` and
  // `turn` are those behind then.
  template <typename Phase>
  __device__ __forceinline__ int work_through(Draws& draws, Phase& phase, int& item, int& turn, int end) const {
    phase.begin(item);
    phase.receive(*this);
    int done = 0;
    do {
      const int next = work_on(draws, phase, item, turn);
      if (next < end) {
        phase.begin(next);
      }
      phase.finish(item, turn);
      item = next;
      turn ^= 1;
      ++done;
    } while (item < end);
    return done;
  }

  // What is left of run_once in a block that has drawn that item of the first or the second phase, or none.
  template <typename Work, typename MakeSecond>
  __device__ __forceinline__ void run_from(Draws& draws, int item, int turn, const Work& work_once,
                                           const MakeSecond& make_second) const {
    if (in_first(item)) {
      work_once(item - items_before);
      if (threadIdx.x == 0) {
        const volatile int* const next = counters;
        draws.item[turn ^ 1] = in_first(*next) ? items : draw();
      }
      __syncthreads();
      turn ^= 1;
      item = draws.item[turn];
    }
    if (!exists(item)) {
      leave_by_count(draws.copy);
    }
    (void)run_second<true>(draws, item, turn, make_second);
  }

  __device__ __forceinline__ void clear(int copy) const {
    counters[0] = 0;
    counters[1] = 0;
    counters[2] = 0;
    counters[3] = copy ^ 1;
  }
  // By a block that draws no more.
  __device__ __forceinline__ void leave_by_count(int copy) const {
    if (threadIdx.x == 0 && atomicAdd(counters + 2, 1) == static_cast<int>(gridDim.x) - 1) {
      clear(copy);
    }
  }

  // Of a block that has drawn that item; gives the last one that it drew. LEAVES: it leaves by count when it has drawn
  // that, while the last item's sums are finished.
  template <bool LEAVES, typename MakeSecond>
  __device__ __forceinline__ int run_second(Draws& draws, int item, int turn, const MakeSecond& make_second) const {
    if (exists(item)) {
      auto phase = make_second();
      phase.begin(item - first_phase);
      phase.receive(*this);
      do {
        const int next = work_on(draws, phase, item - first_phase, turn);
        if (exists(next)) {
          phase.begin(next - first_phase);
        } else if (LEAVES) {
          leave_by_count(draws.copy);
        }
        phase.finish(item - first_phase, turn);
        item = next;
        turn ^= 1;
      } while (exists(item));
    }
    return item;
  }

  // Gives the next item, which all threads find behind a barrier: thread 0 draws it, which takes a way to the L2 and
  // back.
  template <typename Phase>
  __device__ __forceinline__ int work_on(Draws& draws, Phase& phase, int item, int turn) const {
    int ticket = 0;
    if constexpr (AHEAD) {
      ticket = draw();
    }
    phase.work(item, turn);
    if constexpr (!AHEAD) {
      ticket = draw();
    }
    if (threadIdx.x == 0) {
      draws.item[turn ^ 1] = ticket;
    }
    __syncthreads();
    return draws.item[turn ^ 1];
  }
};
