/**
 * What an endpoint is to get and has not got. Of one gift (or purchase) the earliest goes first, and the next only once
 * it is done; different ones don't wait for each other.
 */
import type { Position } from '../ports/eventStore.js';

export interface Waiting {
  /** Of the feed's entry; of a ping, of the event that asked for it. */
  readonly position: Position;
  /** The gift, else the transaction; of a ping, its own. */
  readonly key: string;
  /** When it happened: ISO 8601, UTC. */
  readonly at: string;
  /** The feed's; absent: of a ping, or in a record of an earlier release. */
  readonly type?: string;
  /** Of a ping: the id of the event that asked for it. */
  readonly ping?: string;
  /** Attempts that failed. */
  readonly tries: number;
  /** Of the first attempt: milliseconds since the epoch. */
  readonly firstAt?: number;
  /** Absent: now. */
  readonly nextAt?: number;
  /** Its owner wants it now: an attempt alongside those of the schedule, whatever pause the receiver asked for. */
  readonly asked?: true;
}

export interface Backlog {
  readonly size: number;
  /** Those without an attempt. */
  readonly untried: number;
  /**
   * Of one that waits already, or is requested: it is due now, with what goes before it, and its next attempt takes
   * nothing of its schedule.
   */
  add(item: Waiting): void;
  /** What is not requested waits for `pausedUntil`. Nothing else of its key is taken until it is back. */
  take(now: number, pausedUntil?: number): Waiting | undefined;
  done(item: Waiting): void;
  /** Waits on, as `after`, in place of what was taken. */
  putBack(item: Waiting, after?: Waiting): void;
  allDue(): void;
  /** Forgets all others. What was taken may come back all the same. */
  keep(isWanted: (item: Waiting) => boolean): void;
  /** When the oldest happened that waits for no other of its key (ISO 8601, UTC), by whether it was tried. */
  oldest(): { readonly untried?: string; readonly failed?: string };
  /** Of those that can be taken then, milliseconds since the epoch; `undefined`: there is none. */
  nextDueAt(pausedUntil?: number): number | undefined;
  /** In the order of positions. */
  items(): readonly Waiting[];
}

export function openBacklog(stored: readonly Waiting[] = []): Backlog {
  const byKey = new Map<string, Waiting[]>();
  const taken = new Set<string>();
  let size = 0;

  /** Where it stands, or belongs, in the line of its key. */
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
    if (found || item.asked === true) for (let n = 0; n <= at; n++) line[n] = { ...(line[n] as Waiting), asked: true };
  }

  for (const item of stored) add(item);

  function* heads(): Generator<Waiting> {
    for (const [key, [head]] of byKey) if (head !== undefined && !taken.has(key)) yield head;
  }

  return {
    get size() {
      return size;
    },
    get untried() {
      let count = 0;
      for (const line of byKey.values()) for (const { tries } of line) if (tries === 0) count += 1;
      return count;
    },
    add,
    take(now, pausedUntil = 0) {
      for (const head of heads()) {
        if (dueAt(head, pausedUntil) > now) continue;
        taken.add(head.key);
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
      taken.delete(key);
      const line = byKey.get(key) ?? [];
      const { at, found } = find(position, line);
      if (found && after !== undefined) line[at] = after;
    },
    allDue() {
      for (const line of byKey.values()) for (const [at, { nextAt: _, ...item }] of line.entries()) line[at] = item;
    },
    keep(isWanted) {
      for (const [key, line] of byKey) {
        const wanted = line.filter(isWanted);
        size -= line.length - wanted.length;
        if (wanted.length > 0) byKey.set(key, wanted);
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

const dueAt = ({ asked, nextAt = 0 }: Waiting, pausedUntil: number): number =>
  asked === true ? 0 : Math.max(nextAt, pausedUntil);

export function scheduled(item: Waiting): Waiting {
  const { asked: _, ...rest } = item;
  return rest;
}
