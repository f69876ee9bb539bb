/**
 * Items in progress, which are added and removed with every request. A `Map` allocates new tables all the time for
 * them, and V8 retains the items of its old tables until the next major collection.
 */
export interface InFlight<T> {
  /** Adds an item. @returns the item's number, from 1; it may be given to another item after `take` */
  put(item: T): number;
  get(number: number): T | undefined;
  take(number: number): T | undefined;
  size(): number;
  values(): T[];
  /** Removes all items and returns them. */
  clear(): T[];
}

export function inFlight<T>(): InFlight<T> {
  let items: (T | undefined)[] = [];
  let free: number[] = [];

  function values(): T[] {
    return items.filter((item) => item !== undefined);
  }

  return {
    put(item) {
      const number = free.pop() ?? items.length + 1;
      items[number - 1] = item;
      return number;
    },
    get: (number) => items[number - 1],
    take(number) {
      const item = items[number - 1];
      if (item === undefined) return undefined;
      items[number - 1] = undefined;
      free.push(number);
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
