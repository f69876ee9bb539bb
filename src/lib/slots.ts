/**
 * What is under way: items that come and go with every request. A `Map` grows new tables all the time for these, and V8
 * keeps whatever was in its old tables until the next major collection.
 */
export interface Slots<T> {
  /** @returns its number, from 1; free again after `take` */
  put(item: T): number;
  get(slot: number): T | undefined;
  take(slot: number): T | undefined;
  size(): number;
  values(): T[];
  /** Takes all. */
  clear(): T[];
}

export function slots<T>(): Slots<T> {
  let items: (T | undefined)[] = [];
  let free: number[] = [];

  function values(): T[] {
    return items.filter((item) => item !== undefined);
  }

  return {
    put(item) {
      const slot = free.pop() ?? items.length + 1;
      items[slot - 1] = item;
      return slot;
    },
    get: (slot) => items[slot - 1],
    take(slot) {
      const item = items[slot - 1];
      if (item === undefined) return undefined;
      items[slot - 1] = undefined;
      free.push(slot);
      return item;
    },
    size: () => items.length - free.length,
    values,
    clear() {
      const all = values();
      items = [];
      free = [];
      return all;
    },
  };
}
