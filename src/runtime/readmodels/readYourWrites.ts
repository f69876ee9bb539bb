/**
 * Read-your-writes: a document by id shows all that its stream held when it was asked for, whichever process appended
 * it. Writes need not wait for the read model, and of reads only those wait whose document is behind.
 * The log is asked for its end: on this machine without a round trip, elsewhere beside the read of the document, once
 * for all reads meanwhile. Only where the log has grown beyond what the read model is known to show is the document's
 * own stream looked at.
 */
import type { EventStore, LocalLog, Position } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { inTurns } from '../../lib/async/inTurns.js';
import { within } from '../../lib/async/within.js';
import type { ReadModel } from './readModel.js';

export type LogEnds = Pick<EventStore, 'local' | 'end' | 'lastOf'>;

/**
 * How long a read waits for a document that is behind, in ms. Then it is answered as it is, as after a write that
 * waited.
 */
const BEHIND_WAIT_MS = 1_000;
/** Streams of so many documents are looked at one by one: cheap on this machine, a request each elsewhere. */
const FEW = { here: 100, far: 8 };
/** How often at most the read model is asked how far it has come, in ms: the answer may cost a look into its store. */
const FOLLOW_MS = 10;

/**
 * The model with read-your-writes in `get` and `getMany`. A log on this machine that can't be read fails them with
 * UnavailableError; one elsewhere that does not answer leaves them as the read model shows them. @param log without it,
 * or where it can't tell a stream's last event, the model is returned as it is @param streamOf the stream that a
 * document is made of; what other streams hold of it may come later
 */
export function readYourWrites<B extends Body>(
  model: ReadModel<B>,
  log: LogEnds | undefined,
  streamOf: (id: string) => string,
): ReadModel<B> {
  if (log?.local !== undefined) return readingHere(model, log.local, streamOf);
  const lastOf = log?.lastOf;
  if (log === undefined || lastOf === undefined) return model;
  return readingFar(model, { end: async () => log.end(), lastOf: async (stream) => lastOf(stream) }, streamOf);
}

/** Up to where every document is known to show the log. */
interface Shown {
  /** In the edition in use. */
  sofar(): Position;
  /** Notes in the background when the model has come to the log's end: then no stream need be looked at. */
  follow(end: Position): void;
}

function whatIsShown<B extends Body>(model: ReadModel<B>): Shown {
  let seen: Position = '';
  let edition = model.edition();
  let following = false;
  let followed = Number.NEGATIVE_INFINITY;
  return {
    sofar() {
      // Another build may stand elsewhere.
      if (edition !== model.edition()) {
        edition = model.edition();
        seen = '';
      }
      return seen;
    },
    follow(end) {
      const now = performance.now();
      if (following || now - followed < FOLLOW_MS) return;
      following = true;
      followed = now;
      const of = edition;
      // The next read meets the failure.
      const reached = model.reached(end, BEHIND_WAIT_MS).catch(() => false);
      void reached.then((isThere) => {
        following = false;
        if (isThere && of === edition && end > seen) seen = end;
      });
    },
  };
}

/** The log is on this machine: the document is read first, then the log tells what it holds beyond. */
function readingHere<B extends Body>(
  model: ReadModel<B>,
  from: LocalLog,
  streamOf: (id: string) => string,
): ReadModel<B> {
  const shown = whatIsShown(model);

  /** The last position beyond `known` that the log has of these documents. */
  function beyond(known: Position, ids: readonly string[]): Position | undefined {
    const end = from.end();
    if (end === undefined || end <= known) return undefined;
    shown.follow(end);
    return latest(
      known,
      ids.map((id) => from.lastOf(streamOf(id))),
    );
  }

  /** Reads; where the log held more by then, waits for that and reads again. */
  async function read<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const known = shown.sofar();
    const of = model.edition();
    const found = await work();
    const behind = beyond(of === model.edition() ? known : '', ids);
    if (behind === undefined) return found;
    await model.reached(behind, BEHIND_WAIT_MS);
    return work();
  }

  /** Waits until all that the log holds is shown, and reads once, since there is much to read. */
  async function readMany<T>(work: () => Promise<T>): Promise<T> {
    const end = from.end();
    if (end !== undefined && end > shown.sofar()) await model.reached(end, BEHIND_WAIT_MS);
    return work();
  }

  return {
    ...model,
    readYourWrites: true,
    get: (id) => read([id], () => model.get(id)),
    getMany: (ids) =>
      ids.length > FEW.here ? readMany(() => model.getMany(ids)) : read(ids, () => model.getMany(ids)),
  };
}

/**
 * The log is asked over a network: for its end while the document is read, and for the streams of the few documents
 * that may be behind. Where it does not answer, reads wait a second at most, and from then on not at all until it
 * answers again.
 */
function readingFar<B extends Body>(
  model: ReadModel<B>,
  log: Required<Pick<LogEnds, 'end' | 'lastOf'>>,
  streamOf: (id: string) => string,
): ReadModel<B> {
  const shown = whatIsShown(model);
  const endNow = inTurns(log.end);
  let answers = true;

  /** The log's end; `undefined` also while the log does not answer. */
  async function heardEnd(): Promise<Position | undefined> {
    const waited = answers;
    const heard = endNow().then(
      (end) => {
        answers = true;
        return end;
      },
      (error: unknown) => {
        if (!(error instanceof UnavailableError)) throw error;
        answers = false;
        return undefined;
      },
    );
    if (waited) return within(heard, BEHIND_WAIT_MS, silent);
    heard.catch(() => undefined);
    return undefined;
  }

  function silent(): undefined {
    answers = false;
  }

  /** Up to where the log, which ends at `end`, may have more of these documents than `known`. */
  async function beyond(known: Position, ids: readonly string[], end: Position): Promise<Position | undefined> {
    if (ids.length > FEW.far) return end;
    const asked = Promise.all(ids.map(async (id) => log.lastOf(streamOf(id)))).then(
      (last) => latest(known, last),
      (error: unknown) => {
        if (!(error instanceof UnavailableError)) throw error;
        return end;
      },
    );
    return within(asked, BEHIND_WAIT_MS, () => end);
  }

  async function read<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = shown.sofar();
    const of = model.edition();
    const [end, found] = await Promise.all([heardEnd(), work()]);
    const known = of === model.edition() ? before : '';
    if (end === undefined || end <= known) return found;
    shown.follow(end);
    const behind = await beyond(known, ids, end);
    if (behind === undefined) return found;
    await model.reached(behind, BEHIND_WAIT_MS);
    return work();
  }

  return {
    ...model,
    readYourWrites: true,
    get: (id) => read([id], () => model.get(id)),
    getMany: (ids) => (ids.length === 0 ? model.getMany(ids) : read(ids, () => model.getMany(ids))),
  };
}

/** The furthest of these positions beyond `known`. */
function latest(known: Position, positions: readonly (Position | undefined)[]): Position | undefined {
  let last: Position | undefined;
  for (const one of positions) if (one !== undefined && one > (last ?? known)) last = one;
  return last;
}
