/**
 * The events that wait for delivery to one endpoint. Events of one gift (or purchase) go one after the other, in the
 * order of the log. Those of different gifts do not wait for each other.
 */
import type { Position } from '../ports/eventStore.js';
import { isWaitedFor } from './retries.js';

export interface Waiting {
  /** Position of the feed's entry; for a ping, of the event that requested it. */
  readonly position: Position;
  /** Events with the same key are delivered in order: the gift's id, else the transaction's; a ping has its own. */
  readonly key: string;
  /** Time of the event: ISO 8601, UTC. */
  readonly at: string;
  /** Type of the feed's entry; absent for a ping. */
  readonly type?: string;
  /** For a ping: id of the event that requested it. */
  readonly ping?: string;
  /** Number of failed attempts. */
  readonly tries: number;
  /** Time of the first failed attempt, milliseconds since the epoch. */
  readonly firstAt?: number;
  /** Time from which the next attempt is due, milliseconds since the epoch; absent: now. */
  readonly nextAt?: number;
  /** The owner requested it: an extra attempt alongside the schedule, whatever pause the receiver requested. */
  readonly requested?: true;
}

export interface Backlog {
  readonly size: number;
  /** Number of waiting events without an attempt, except those that wait behind a failed one of their key. */
  readonly ready: number;
  /**
   * Adds an event. One that waits already, or is requested, is due now along with the earlier ones of its key. Its next
   * attempt does not count against its schedule.
   */
  add(item: Waiting): void;
  /** Takes a due event; an unrequested one only after `pausedUntil`. Its key is locked until `done` or `putBack`. */
  take(now: number, pausedUntil?: number): Waiting | undefined;
  done(item: Waiting): void;
  /** Returns a taken event to the backlog, replaced by `after` where given. A request since it was taken counts. */
  putBack(item: Waiting, after?: Waiting): void;
  allDue(): void;
  /** Makes all events due, and forgets their failed attempts. */
  startAfresh(): void;
  /**
   * Drops events that `isRetained` refuses. A dropped one that was taken may still be passed to `done` or `putBack`.
   */
  keep(isRetained: (item: Waiting) => boolean): void;
  /** Times (ISO 8601, UTC) of the oldest untried and the oldest failed event, among the first of each key. */
  oldest(): { readonly untried?: string; readonly failed?: string };
  /** Earliest time at which an event can be taken, milliseconds since the epoch; `undefined`: there is none. */
  nextDueAt(pausedUntil?: number): number | undefined;
  /** All waiting events, in the order of positions. */
  items(): readonly Waiting[];
}

export function openBacklog(stored: readonly Waiting[] = []): Backlog {
  const byKey = new Map<string, Waiting[]>();
  /** Taken events, by key; `requested`: since they were taken. */
  const taken = new Map<string, { readonly position: Position; requested: boolean }>();
  let size = 0;

  /** Index at which an event is, or belongs, in the line of its key. */
  function find(position: Position, line: readonly Waiting[]): { readonly at: number; readonly found: boolean } {
    const at = line.findIndex((one) => one.position >= position);
    return at === -1 ? { at: line.length, found: false } : { at, found: line[at]?.position === position };
  }

  function add(item: Waiting): void {
    const line = byKey.get(item.key) ?? [];
    byKey.set(item.key, line);
    const { at, found } = find(item.position, line);
    if (!found) {
      line.splice(at, 0, item);
      size += 1;
    }
    if (!found && item.requested !== true) return;
    for (let n = 0; n <= at; n++) line[n] = { ...(line[n] as Waiting), requested: true };
    const inProgress = taken.get(item.key);
    if (inProgress !== undefined && inProgress.position <= item.position) inProgress.requested = true;
  }

  for (const item of stored) add(item);

  function* heads(): Generator<Waiting> {
    for (const [key, [head]] of byKey) if (head !== undefined && !taken.has(key)) yield head;
  }

  return {
    get size() {
      return size;
    },
    get ready() {
      let count = 0;
      for (const line of byKey.values()) if (line[0]?.tries === 0) count += line.length;
      return count;
    },
    add,
    take(now, pausedUntil = 0) {
      for (const head of heads()) {
        if (isWaitedFor(dueAt(head, pausedUntil), now)) continue;
        taken.set(head.key, { position: head.position, requested: false });
        return head;
      }
      return undefined;
    },
    done({ key, position }) {
      taken.delete(key);
      const line = byKey.get(key) ?? [];
      const { at, found } = find(position, line);
      if (!found) return;
      line.splice(at, 1);
      size -= 1;
      if (line.length === 0) byKey.delete(key);
    },
    putBack({ key, position }, after) {
      const isRequested = taken.get(key)?.requested === true;
      taken.delete(key);
      const line = byKey.get(key) ?? [];
      const { at, found } = find(position, line);
      if (found && after !== undefined) line[at] = isRequested ? { ...after, requested: true } : after;
    },
    allDue() {
      for (const line of byKey.values()) for (const [at, { nextAt: _, ...item }] of line.entries()) line[at] = item;
    },
    startAfresh() {
      for (const line of byKey.values()) for (const [at, item] of line.entries()) line[at] = untried(item);
    },
    keep(isRetained) {
      for (const [key, line] of byKey) {
        const retained = line.filter(isRetained);
        size -= line.length - retained.length;
        if (retained.length > 0) byKey.set(key, retained);
        else byKey.delete(key);
      }
    },
    oldest() {
      const found: { untried?: string; failed?: string } = {};
      for (const [{ at, tries } = { at: '', tries: 0 }] of byKey.values()) {
        const kind = tries === 0 ? 'untried' : 'failed';
        if (found[kind] === undefined || at < found[kind]) found[kind] = at;
      }
      return found;
    },
    nextDueAt(pausedUntil = 0) {
      let next: number | undefined;
      for (const head of heads()) next = Math.min(next ?? Infinity, dueAt(head, pausedUntil));
      return next;
    },
    items: () => [...byKey.values()].flat().sort((one, other) => (one.position < other.position ? -1 : 1)),
  };
}

const dueAt = ({ requested, nextAt = 0 }: Waiting, pausedUntil: number): number =>
  requested === true ? 0 : Math.max(nextAt, pausedUntil);

export function untried(item: Waiting): Waiting {
  const { firstAt: _, nextAt: __, ...rest } = item;
  return { ...rest, tries: 0 };
}

export function scheduled(item: Waiting): Waiting {
  const { requested: _, ...rest } = item;
  return rest;
}
