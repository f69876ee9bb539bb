/** Resources that close in the opposite order of their opening, each once, whatever goes wrong with one of them. */

/** A stack of open resources. */
export interface Resources {
  /** Notes how something opened just now is closed. */
  add<T>(resource: T, close: (resource: T) => Promise<void>): T;
  /** Closes all, last in, first out. @throws AggregateError with whatever closing threw, once all have been tried. */
  close(): Promise<void>;
}

/** An empty stack. */
export function resources(): Resources {
  const closers: (() => Promise<void>)[] = [];
  return {
    add(resource, close) {
      closers.push(() => close(resource));
      return resource;
    },
    async close() {
      const errors: unknown[] = [];
      for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) {
        try {
          await closer();
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw new AggregateError(errors, 'closing failed');
    },
  };
}
