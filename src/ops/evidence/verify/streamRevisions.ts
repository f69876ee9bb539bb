/**
 * Checks that each event is the next one of its stream. The last revision of a stream that is not remembered is read
 * from the log, so that memory is constant.
 */
import { inParallel } from '../../../lib/async/inParallel.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { FindingsList, type PlacedEvent, locationOf, type StreamGap } from './verification.js';

/**
 * Number of recent streams that are remembered. The same number of earlier ones is remembered with them: about 40 MB at
 * most.
 */
const REMEMBERED = 100_000;
const REQUESTED_AT_ONCE = 32;

/**
 * Stand-in for two events of which one is unreadable. Its leaf tells that it was altered; the order of the two can't be
 * judged.
 */
const UNREADABLE = [null, null] as const;

interface Questionable {
  readonly event: PlacedEvent;
  readonly number: number;
  /** Whether the event's stream is not remembered. */
  readonly unknown: boolean;
}

export class StreamRevisions {
  readonly gaps = new FindingsList<StreamGap>();
  readonly #stored: Pick<EventStore, 'read'>;
  /**
   * Last revisions of recent streams, and in `#lastBefore` of those before them. An LRU cache took a twentieth of all
   * the time.
   */
  #last = new Map<string, number>();
  #lastBefore = new Map<string, number>();
  readonly #most: number;
  #questionable: Questionable[] = [];

  /** @param remembered number of recent streams that are remembered */
  constructor(stored: Pick<EventStore, 'read'>, remembered = REMEMBERED) {
    this.#stored = stored;
    this.#most = remembered;
  }

  /**
   * Takes the next event of the log.
   * @param number the event's number in the log's order, from 1
   */
  look(event: PlacedEvent, number: number): void {
    const { stream, revision } = event;
    const last = this.#last.get(stream) ?? this.#lastBefore.get(stream);
    this.#last.set(stream, revision);
    if (this.#last.size > this.#most) [this.#last, this.#lastBefore] = [new Map(), this.#last];
    if (last === undefined ? revision === 0 : revision === last + 1) return;
    this.#questionable.push({ event, number, unknown: last === undefined });
  }

  /** Judges the events since the last call, some thousand at most. @throws UnavailableError */
  async settle(): Promise<void> {
    const open = this.#questionable;
    if (open.length === 0) return;
    this.#questionable = [];
    const inPlace = new Set<Questionable>();
    const unknown = open.filter((one) => one.unknown);
    await inParallel(unknown, Math.min(REQUESTED_AT_ONCE, unknown.length), async (one) => {
      if (await this.#isInPlace(one.event)) inPlace.add(one);
    });
    for (const one of open) if (!inPlace.has(one)) this.gaps.add({ event: locationOf(one.event, one.number) });
  }

  async #isInPlace({ stream, revision, position }: PlacedEvent): Promise<boolean> {
    const [before, own] = await this.#stored.read(stream, { from: revision - 1, limit: 2 }).catch((error: unknown) => {
      if (error instanceof AlteredEventError) return UNREADABLE;
      throw error;
    });
    if (before === null) return true;
    return before?.revision === revision - 1 && before.position < position && own?.position === position;
  }
}
