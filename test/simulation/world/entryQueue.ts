/** The entries of a simulation that are still to run, the earliest first: a binary heap. */

/** A part of the simulation that entries run in: a process, an engine's server, the simulation itself. */
export interface Owner {
  readonly name: string;
  /** Decides, together with the time, the order of entries of one time that belong to different owners. */
  readonly salt: number;
}

export interface Entry {
  /** Virtual milliseconds since the simulation's start. */
  readonly at: number;
  /** Number in the order of creation. Entries of one owner and time run in this order. */
  readonly number: number;
  readonly owner: Owner;
  readonly kind: string;
  readonly text: string;
  readonly run: () => void;
  /** The entry is not to run any more. */
  cancelled: boolean;
}

export interface EntryQueue {
  put(entry: Entry): void;
  /** Takes the next entry that is not cancelled, if its time is `until` at the latest. */
  take(until: number): Entry | undefined;
}

export function entryQueue(): EntryQueue {
  const heap: Entry[] = [];

  function rise(from: number): void {
    const entry = heap[from] as Entry;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!precedes(entry, heap[parent] as Entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  function sink(entry: Entry): void {
    let at = 0;
    for (let child = 1; child < heap.length; child = at * 2 + 1) {
      const other = child + 1;
      if (other < heap.length && precedes(heap[other] as Entry, heap[child] as Entry)) child = other;
      if (!precedes(heap[child] as Entry, entry)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = entry;
  }

  function removeFirst(): void {
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) sink(last);
  }

  return {
    put(entry) {
      heap.push(entry);
      rise(heap.length - 1);
    },
    take(until) {
      for (;;) {
        const [first] = heap;
        if (first === undefined || (!first.cancelled && first.at > until)) return undefined;
        removeFirst();
        if (!first.cancelled) return first;
      }
    },
  };
}

function precedes(one: Entry, other: Entry): boolean {
  if (one.at !== other.at) return one.at < other.at;
  if (one.owner !== other.owner) {
    const [first, second] = [turnOf(one), turnOf(other)];
    if (first !== second) return first < second;
  }
  return one.number < other.number;
}

/** The same for all entries of one owner and time, so that these stay in their order. */
function turnOf({ at, owner }: Entry): number {
  const mixed = Math.imul(owner.salt ^ Math.trunc(at * 1_000), 0x9e37_79b1);
  return Math.imul(mixed ^ (mixed >>> 15), 0x85eb_ca6b) >>> 0;
}
