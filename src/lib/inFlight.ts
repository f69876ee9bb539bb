/**
 * What is under way: items that come and go with every request. A `Map` grows new tables all the time for these, and V8
 * keeps whatever was in its old tables until the next major collection.
 */
export interface InFlight<T> {
  /** @returns its number, from 1; free again after `take` */
  put(item: T): number;
  get(number: number): T | undefined;
  take(number: number): T | undefined;
  size(): number;
  values(): T[];
  /** Takes all. */
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
