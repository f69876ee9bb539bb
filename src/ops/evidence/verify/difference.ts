/** How a log differs from the leaves that were retained of it. */

export interface Change {
  /** Kind of the change. `altered` includes the case that no later event is as it was. */
  readonly change: 'altered' | 'removed' | 'inserted' | 'exchanged' | 'cut off';
  /** Number of changed events; for `exchanged`, the distance between the two events. */
  readonly count: number;
}

/** Number of leaves that are compared, from the first that differs on. */
export const WINDOW = 1_024;

/**
 * Classifies the difference between a log and the leaves that were retained of it.
 * @param now leaves of the log as it is, from the first that differs on: `WINDOW` of them, or up to the log's end
 * @param then leaves of the log as it was, from the same index on; at least one
 */
export function changeBetween(now: readonly Uint8Array[], then: readonly Uint8Array[]): Change {
  // No two events have the same leaf.
  const same = (a: number, b: number): boolean => {
    const [one, other] = [now[a], then[b]];
    return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
  };
  if (now.length === 0) return { change: 'cut off', count: then.length };
  const most = Math.max(now.length, then.length);
  const first = (holds: (by: number) => boolean): number | undefined => {
    for (let by = 1; by < most; by++) if (holds(by)) return by;
    return undefined;
  };
  const removed = first((by) => same(0, by));
  if (removed !== undefined) return { change: same(removed, 0) ? 'exchanged' : 'removed', count: removed };
  const inserted = first((by) => same(by, 0));
  if (inserted !== undefined) return { change: 'inserted', count: inserted };
  return { change: 'altered', count: first((by) => same(by, by)) ?? Math.min(now.length, then.length) };
}
