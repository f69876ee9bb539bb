/**
 * Read-your-writes: a document by id shows all that its stream held at the request, whichever process appended it.
 * Writes do not wait. A read waits only if its document is behind, and only for a moment: then the document is folded
 * from its streams (docs/design.md#fresh-reads). Each read requests the log's end: locally without a round trip,
 * else during the read of the document, shared with simultaneous reads. The document's own stream is read only if the
 * log has grown beyond the known progress of the read model.
 */
import { ticks } from '../../lib/world.js';
import type { EventStore, LocalLog, Position } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { inTurns } from '../../lib/async/inTurns.js';
import { within } from '../../lib/async/within.js';
import type { ReadModel } from './readModel.js';

export type LogEnds = Pick<EventStore, 'local' | 'end' | 'lastOf' | 'hurry'>;

/** How documents of a read model are read from the log. */
export interface DocumentStreams<B> {
  /** The document's stream; events of other streams may show later. */
  of(id: string): string;
  /**
   * The document as its streams have it now, by the read model's own fold.
   * @param shown the document as the read model shows it, perhaps without the last events
   * @returns `undefined`: the streams that the id names hold no such document
   * @throws UnavailableError
   */
  fold(id: string, shown: B | undefined): Promise<B | undefined>;
  /** Finds a document that no stream named by its id holds; called only by `get`. @throws UnavailableError */
  search?(id: string): Promise<B | undefined>;
  /** Whether no later event changes the document, which then is never behind. */
  isFinal?(document: B): boolean;
}

/** How long a read waits for a document that is behind, before it is folded from its streams. */
export const BEHIND_WAIT_MS = 100;
/** How long a read waits for a remote log's answer. */
const LOG_MS = 1_000;
/** The same while the log is silent: one that answers again does so in this time, and the read is not late. */
const SILENT_LOG_MS = 20;
/** Up to this many streams are read one by one: cheap on this machine, a request each over a network. */
const FEW = { local: 100, remote: 8 };
/** Least time between two checks of the read model's progress, which may read its store. */
const FOLLOW_MS = 10;
const PARALLEL_FOLDS = 32;

/**
 * Adds read-your-writes to `get` and `getMany`. A local log that can't be read fails them with UnavailableError; a
 * remote log that does not answer leaves the model's answer, and fails them where a document is missing, or where the
 * model has not reached the caller's position.
 * @param log without `local` and `lastOf`: the model is returned as it is
 */
export function readYourWrites<B extends Body>(
  model: ReadModel<B>,
  log: LogEnds,
  streams: DocumentStreams<B>,
): ReadModel<B> {
  if (log.local !== undefined) return reading(model, streams, localLook(log.local, streams));
  const lastOf = log.lastOf?.bind(log);
  if (lastOf === undefined) return model;
  return reading(
    model,
    streams,
    remoteLook({ end: async () => log.end(), lastOf: async (stream) => lastOf(stream) }, streams),
  );
}

interface Shown {
  /** Position up to which every document of the edition in use shows the log. */
  sofar(): Position;
  /** Notes in the background when the model reaches `end`: then no stream need be read. */
  follow(end: Position): void;
}

function whatIsShown<B extends Body>(model: ReadModel<B>): Shown {
  let shown: Position = '';
  let edition = model.edition();
  let following = false;
  let followed = Number.NEGATIVE_INFINITY;
  return {
    sofar() {
      if (edition !== model.edition()) {
        edition = model.edition();
        shown = '';
      }
      return shown;
    },
    follow(end) {
      const now = ticks();
      if (following || now - followed < FOLLOW_MS) return;
      following = true;
      followed = now;
      const of = edition;
      // A failure is ignored here, since the next read fails by itself.
      const reached = model.reached(end, LOG_MS, 'patient').catch(() => false);
      void reached.then((isThere) => {
        following = false;
        if (isThere && of === edition && end > shown) shown = end;
      });
    },
  };
}

/**
 * Waits briefly for a position, and not at all while the model has not reached one that an earlier read waited for in
 * vain. Otherwise every read would wait for nothing while a bulk is projected.
 */
function reachedSoon<B extends Body>(model: ReadModel<B>): (position: Position, timeoutMs: number) => Promise<boolean> {
  let missed: Position | undefined;
  return async (position, timeoutMs) => {
    if (missed !== undefined && position >= missed) {
      if (!(await model.reached(missed, 0))) return false;
      missed = undefined;
    }
    if (await model.reached(position, timeoutMs)) return true;
    if (timeoutMs > 0) missed = position;
    return false;
  };
}

/** Stands for the end of a remote log that does not answer. */
const SILENT = null;

/** Position of the log's last event; `undefined`: the log is empty. */
type End = Position | typeof SILENT | undefined;

interface Look {
  /**
   * Result of `work`, and an end of the log that is no older; `undefined`: the log is empty. Absent: the end is known
   * without a wait, and read after the work.
   */
  beside?<T>(work: () => Promise<T>): Promise<readonly [found: T, end: End]>;
  end(): End | Promise<End>;
  /** The last position of these documents' streams beyond `known`, or a later one; `undefined`: there is none. */
  beyond(known: Position, ids: readonly string[], end: Position): Promise<Position | undefined> | Position | undefined;
  /** Whether so many documents are requested that the read waits for the log's end before it reads them once. */
  isMuch(ids: readonly string[]): boolean;
}

function reading<B extends Body>(model: ReadModel<B>, streams: DocumentStreams<B>, look: Look): ReadModel<B> {
  const shown = whatIsShown(model);
  const soon = reachedSoon(model);
  const { isFinal } = streams;
  const isOpen = (document: B | undefined): boolean => document === undefined || isFinal?.(document) !== true;

  /** Requests the log's end only if a document may be behind. */
  async function found<T>(
    work: () => Promise<T>,
    isOpenIn: (one: T) => boolean,
  ): Promise<readonly [found: T, end: End]> {
    if (isFinal === undefined && look.beside !== undefined) return look.beside(work);
    const one = await work();
    return [one, isOpenIn(one) ? await look.end() : undefined];
  }

  /** Position of the last event that the model lacks of these documents; `undefined`: it lacks none. */
  async function lacking(
    known: Position,
    ids: readonly string[],
    isMissing: boolean,
    end: End,
    since: Position | undefined,
  ): Promise<Position | undefined> {
    if (end === SILENT) {
      if (isMissing || (since !== undefined && !(await model.reached(since, 0))))
        throw new UnavailableError('the log does not say whether it holds what the read model lacks');
      return undefined;
    }
    if (end === undefined || end <= known) return undefined;
    shown.follow(end);
    return (await look.beyond(known, ids, end)) ?? (isMissing ? end : undefined);
  }

  async function folded(id: string, document: B | undefined): Promise<B | undefined> {
    try {
      return await streams.fold(id, document);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      // The answer is the same as for a document that the projector can't fold (docs/design.md#read-models).
      throw new UnavailableError(`${id} can't be folded from its streams: ${String(error)}`);
    }
  }

  async function foldedMany(ids: readonly string[], documents: readonly (B | undefined)[]): Promise<(B | undefined)[]> {
    const all = [...documents];
    await inParallel(all.entries(), PARALLEL_FOLDS, async ([index, document]) => {
      if (isOpen(document)) all[index] = await folded(ids[index] as string, document);
    });
    return all;
  }

  async function get(id: string, since?: Position): Promise<B | undefined> {
    const before = shown.sofar();
    const of = model.edition();
    let document: B | undefined;
    let end: End | Promise<End>;
    if (isFinal === undefined && look.beside !== undefined) [document, end] = await look.beside(() => model.get(id));
    else {
      document = await model.get(id);
      end = isOpen(document) ? look.end() : undefined;
      if (end instanceof Promise) end = await end;
    }
    const known = of === model.edition() ? before : '';
    // Nearly every read ends here.
    if (end === undefined || (end !== SILENT && end <= known)) return document;
    const behind = await lacking(known, [id], document === undefined, end, since);
    if (behind === undefined) return document;
    if (await soon(behind, BEHIND_WAIT_MS)) return model.get(id);
    return (await folded(id, document)) ?? streams.search?.(id);
  }

  async function getMuch(ids: readonly string[]): Promise<(B | undefined)[]> {
    const end = await look.end();
    const isThere = end === undefined || end === SILENT || end <= shown.sofar() || (await soon(end, BEHIND_WAIT_MS));
    const documents = await model.getMany(ids);
    return isThere ? documents : foldedMany(ids, documents);
  }

  return {
    ...model,
    reached: async (position, timeoutMs, ...how) =>
      timeoutMs <= BEHIND_WAIT_MS ? soon(position, timeoutMs) : model.reached(position, timeoutMs, ...how),
    get,
    async getMany(ids, since) {
      if (ids.length === 0) return [];
      if (look.isMuch(ids)) return getMuch(ids);
      const before = shown.sofar();
      const of = model.edition();
      const [documents, end] = await found(
        () => model.getMany(ids),
        (all) => all.some(isOpen),
      );
      const open = ids.filter((_, index) => isOpen(documents[index]));
      const known = of === model.edition() ? before : '';
      const behind = await lacking(known, open, documents.includes(undefined), end, since);
      if (behind === undefined) return documents;
      return (await soon(behind, BEHIND_WAIT_MS)) ? model.getMany(ids) : foldedMany(ids, documents);
    },
  };
}

function localLook(log: LocalLog, streams: Pick<DocumentStreams<never>, 'of'>): Look {
  return {
    end: () => log.end(),
    beyond: (known, ids) =>
      latest(
        known,
        ids.map((id) => log.lastOf(streams.of(id))),
      ),
    isMuch: (ids) => ids.length > FEW.local,
  };
}

/**
 * A remote log's end is read together with the document, then the streams of a few documents that may be behind.
 * Without an answer reads wait a second at most, and then 20 ms until the log answers again.
 */
function remoteLook(log: Required<Pick<LogEnds, 'end' | 'lastOf'>>, streams: Pick<DocumentStreams<never>, 'of'>): Look {
  const endNow = inTurns(log.end);
  let answers = true;

  async function end(): Promise<End> {
    const waitMs = answers ? LOG_MS : SILENT_LOG_MS;
    const answer = endNow().then(
      (position) => {
        answers = true;
        return position;
      },
      (error: unknown) => {
        if (!(error instanceof UnavailableError)) throw error;
        return silent();
      },
    );
    return within(answer, waitMs, silent);
  }

  function silent(): typeof SILENT {
    answers = false;
    return SILENT;
  }

  return {
    end,
    async beside(work) {
      const [last, found] = await Promise.all([end(), work()]);
      return [found, last];
    },
    async beyond(known, ids, last) {
      if (ids.length > FEW.remote) return last;
      const requested = Promise.all(ids.map(async (id) => log.lastOf(streams.of(id)))).then(
        (positions) => latest(known, positions),
        (error: unknown) => {
          if (!(error instanceof UnavailableError)) throw error;
          return last;
        },
      );
      return within(requested, LOG_MS, () => last);
    },
    isMuch: () => false,
  };
}

function latest(known: Position, positions: readonly (Position | undefined)[]): Position | undefined {
  let last: Position | undefined;
  for (const one of positions) if (one !== undefined && one > (last ?? known)) last = one;
  return last;
}
