/** The latest appends of this process, which its followers need not read from the file. */
import type { RecordedEvent } from '../../../ports/eventStore.js';
import { FIELDS, sizeOf } from './commit.js';
import { eventOf, type EventRow } from './reader.js';

/** Limits of the memory: events, and characters of their data and metadata. */
const MOST = { events: 1_024, size: 4_000_000 };

export interface StoredAppend {
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  readonly fields: readonly string[];
}

export interface RecentSlice<E = RecordedEvent> {
  /** The events that match; all followers share these objects. */
  readonly events: E[];
  readonly through: number;
  /** The slice ends where memory ends: at the log's end when that event was stored. */
  readonly last: boolean;
}

export interface RecentAppends {
  /** Remembers an append, in log order. An append of another process in between clears all earlier ones. */
  add(append: StoredAppend): void;
  /** The matching events after a position; `undefined` where memory lacks a part, or no event follows. */
  after(position: number, limit: number, matches: (stream: string, type: string) => boolean): RecentSlice | undefined;
}

interface Recent {
  readonly row: EventRow;
  readonly size: number;
  event: RecordedEvent | undefined;
}

export function openRecentAppends(): RecentAppends {
  let recent: Recent[] = [];
  let first = 1;
  let size = 0;

  /** Drops the oldest entries down to half of the limit, so that each entry is copied about once. */
  function makeRoom(): void {
    if (recent.length <= MOST.events && size <= MOST.size) return;
    let count = 0;
    for (; count < recent.length && (recent.length - count > MOST.events / 2 || size > MOST.size / 2); count++)
      size -= recent[count]!.size;
    recent = recent.slice(count);
    first += count;
  }

  return {
    add({ stream, revision, position, fields }) {
      const count = fields.length / FIELDS;
      const begin = position - count + 1;
      if (begin !== first + recent.length) {
        recent = [];
        size = 0;
        first = begin;
      }
      for (let index = 0; index < count; index++) {
        const [type, id, at, data, metadata] = fields.slice(index * FIELDS, (index + 1) * FIELDS) as [
          string,
          string,
          string,
          string,
          string,
        ];
        const one: Recent = {
          row: [begin + index, stream, revision - count + 1 + index, type, id, at, data, metadata],
          size: sizeOf([data, metadata]),
          event: undefined,
        };
        recent.push(one);
        size += one.size;
      }
      makeRoom();
    },
    after(position, limit, matches) {
      const end = first + recent.length - 1;
      if (position + 1 < first || position >= end) return undefined;
      const events: RecordedEvent[] = [];
      let through = position;
      while (through < end && events.length < limit) {
        const one = recent[++through - first]!;
        if (matches(one.row[1], one.row[3])) events.push((one.event ??= eventOf(one.row)));
      }
      return { events, through, last: through === end };
    },
  };
}
