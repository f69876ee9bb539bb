export interface Closeable {
  close(): Promise<void> | void;
}

/**
 * Resources that are closed together: last in, first out, each once, also after failures.
 * @throws AggregateError with every failure, and their messages in its own
 */
export interface Resources {
  add<T extends Closeable>(resource: T): T;
  add<T>(resource: T, close: (resource: T) => Promise<void>): T;
  close(): Promise<void>;
}

export function resources(): Resources {
  const closers: (() => Promise<void> | void)[] = [];
  return {
    add<T>(resource: T, close = (one: T) => (one as Closeable).close()): T {
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
      if (errors.length === 0) return;
      const why = errors.map((error) => (error instanceof Error ? error.message : String(error)));
      throw new AggregateError(errors, `closing failed: ${why.join('; ')}`);
    },
  };
}
