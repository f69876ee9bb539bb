import type { EventFilter } from '../ports/eventStore.js';

export function matcherOf({ types, streams }: EventFilter): (stream: string, type: string) => boolean {
  const wanted = types === undefined ? undefined : new Set(types);
  return (stream, type) =>
    (wanted === undefined || wanted.has(type)) &&
    (streams === undefined || streams.some((prefix) => stream.startsWith(prefix)));
}
