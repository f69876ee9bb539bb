import type { EventFilter } from '../ports/eventStore.js';

export function matcherOf({ types, streams }: EventFilter): (stream: string, type: string) => boolean {
  const required = types === undefined ? undefined : new Set(types);
  return (stream, type) =>
    (required === undefined || required.has(type)) &&
    (streams === undefined || streams.some((prefix) => stream.startsWith(prefix)));
}
