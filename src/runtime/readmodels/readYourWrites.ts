/**
 * Read-your-writes on a read model: a document by id shows all that its stream held when it was asked for, whichever
 * process appended it. Who appends need not wait for the read model then, and of those who read only the few wait whose
 * document is behind at that moment.
 *
 * The log is asked for its end: on this machine without a round trip, elsewhere beside the read of the document, once
 * for all who read meanwhile. While the read model is known to show the log up to there, nothing else is asked. Only
 * where the log has grown beyond that is the document's own stream looked at.
 */
import type { EventStore, LocalLog, Position } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { inTurns } from '../../lib/async/inTurns.js';
import { within } from '../../lib/async/within.js';
import type { ReadModel } from './readModel.js';

/** A log, as far as it is asked here. */
export type LogEnds = Pick<EventStore, 'local' | 'end' | 'lastOf'>;

/**
 * How long a read waits for a document that is behind, in ms. Later it is answered as it is: so it would be, too, had
 * the write waited.
 */
const BEHIND_WAIT_MS = 1_000;
/**
 * The streams of more documents are not looked at one by one: some 5 µs each on this machine, a request each elsewhere.
 */
const FEW = { here: 100, far: 8 };
/** How often at most it is asked how far the model has come, in ms: to find out may take looking into its store. */
const FOLLOW_MS = 10;

/**
 * The model with read-your-writes in `get` and `getMany`. All else is as it was. They need the log where it is on this
 * machine: where it can't be read they throw UnavailableError as it does. Where it is elsewhere and does not answer,
 * they tell what is shown.
 * @param log absent, or one that can't tell a stream's last event: nothing can be said in time, and the model is given
 * back as it is
 * @param streamOf the stream that the document with this id is made of; what other streams hold of it may come later
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

/** What of the log every document is known to show. */
interface Shown {
  /** Up to here, in the edition in use. */
  sofar(): Position;
  /**
   * Notes, beside those who read, when the model has come to the log's end: then no one need look at streams any more.
   */
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
      // What fails here the next reader meets, too, and is told.
      const reached = model.reached(end, BEHIND_WAIT_MS).catch(() => false);
      void reached.then((isThere) => {
        following = false;
        if (isThere && of === edition && end > seen) seen = end;
      });
    },
  };
}

/** The log is on this machine: the document is read first, and the log then tells what it holds beyond that. */
function readingHere<B extends Body>(
  model: ReadModel<B>,
  from: LocalLog,
  streamOf: (id: string) => string,
): ReadModel<B> {
  const shown = whatIsShown(model);

  /** Up to where the log tells of these documents beyond `known`; `undefined`: it tells nothing more. */
  function beyond(known: Position, ids: readonly string[]): Position | undefined {
    const end = from.end();
    if (end === undefined || end <= known) return undefined;
    shown.follow(end);
    return latest(
      known,
      ids.map((id) => from.lastOf(streamOf(id))),
    );
  }

  /** Reads, and where the log held more by then, waits for that and reads again. */
  async function read<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const known = shown.sofar();
    const of = model.edition();
    const found = await work();
    const behind = beyond(of === model.edition() ? known : '', ids);
    if (behind === undefined) return found;
    await model.reached(behind, BEHIND_WAIT_MS);
    return work();
  }

  /** Waits until all that the log holds is shown, and reads then: once, since there is much to read. */
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
 * The log is asked over a network: for its end while the document is read, and of the few that may be behind for their
 * streams. While it does not answer, reads go on with what is shown: they wait for it a second at most, and not at all
 * from then on until it answers again.
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

  /**
   * Up to where the log, which ends at `end`, may tell of these documents beyond `known`; `undefined`: it tells nothing
   * more.
   */
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

/** The furthest of these positions beyond `known`; `undefined`: none is. */
function latest(known: Position, positions: readonly (Position | undefined)[]): Position | undefined {
  let last: Position | undefined;
  for (const one of positions) if (one !== undefined && one > (last ?? known)) last = one;
  return last;
}
