/**
 * Read-your-writes: a document by id shows all that its stream held at the request, whichever process appended it.
 * Writes do not wait; of reads, only those wait whose document is behind. Each read asks for the log's end: locally
 * without a round trip, else during the read of the document, shared with simultaneous reads. The document's own stream
 * is looked at only if the log has grown beyond the known progress of the read model.
 */
import type { EventStore, LocalLog, Position } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { inTurns } from '../../lib/async/inTurns.js';
import { within } from '../../lib/async/within.js';
import type { ReadModel } from './readModel.js';

export type LogEnds = Pick<EventStore, 'local' | 'end' | 'lastOf' | 'hurry'>;

/** How long a read waits for a document that is behind. Then the document is shown as it is. */
const BEHIND_WAIT_MS = 1_000;
/** Up to this many streams are looked at one by one: cheap on this machine, a request each over a network. */
const FEW = { local: 100, remote: 8 };
/** Least time between two looks at the read model's progress, which may read its store. */
const FOLLOW_MS = 10;

/**
 * Adds read-your-writes to `get` and `getMany`. A local log that can't be read fails them with UnavailableError; a
 * remote log that does not answer leaves the model's answer.
 * @param log if absent, or without `lastOf`, the model is returned as it is
 * @param streamOf the document's stream; events of other streams may show later
 */
export function readYourWrites<B extends Body>(
  model: ReadModel<B>,
  log: LogEnds | undefined,
  streamOf: (id: string) => string,
): ReadModel<B> {
  if (log?.local !== undefined) return readingLocal(model, log.local, streamOf);
  const lastOf = log?.lastOf;
  if (log === undefined || lastOf === undefined) return model;
  return readingRemote(model, { end: async () => log.end(), lastOf: async (stream) => lastOf(stream) }, streamOf);
}

interface Shown {
  /** In the edition in use, every document shows the log up to here. */
  sofar(): Position;
  /** Notes in the background when the model reaches `end`: then no stream need be looked at. */
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
      const now = performance.now();
      if (following || now - followed < FOLLOW_MS) return;
      following = true;
      followed = now;
      const of = edition;
      // The next read meets the failure.
      const reached = model.reached(end, BEHIND_WAIT_MS, 'patient').catch(() => false);
      void reached.then((isThere) => {
        following = false;
        if (isThere && of === edition && end > shown) shown = end;
      });
    },
  };
}

/** For a local log, which is asked after the read of the document. */
function readingLocal<B extends Body>(
  model: ReadModel<B>,
  from: LocalLog,
  streamOf: (id: string) => string,
): ReadModel<B> {
  const shown = whatIsShown(model);

  function beyond(known: Position, ids: readonly string[]): Position | undefined {
    const end = from.end();
    if (end === undefined || end <= known) return undefined;
    shown.follow(end);
    return latest(
      known,
      ids.map((id) => from.lastOf(streamOf(id))),
    );
  }

  async function read<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const known = shown.sofar();
    const of = model.edition();
    const found = await work();
    const behind = beyond(of === model.edition() ? known : '', ids);
    if (behind === undefined) return found;
    await model.reached(behind, BEHIND_WAIT_MS);
    return work();
  }

  /** Reads once, since there is much to read. */
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
      ids.length > FEW.local ? readMany(() => model.getMany(ids)) : read(ids, () => model.getMany(ids)),
  };
}

/**
 * A remote log's end is read together with the document, then the streams of a few documents that may be behind.
 * Without an answer reads wait a second at most, and then not at all until the log answers again.
 */
function readingRemote<B extends Body>(
  model: ReadModel<B>,
  log: Required<Pick<LogEnds, 'end' | 'lastOf'>>,
  streamOf: (id: string) => string,
): ReadModel<B> {
  const shown = whatIsShown(model);
  const endNow = inTurns(log.end);
  let answers = true;

  /** `undefined` also while the log does not answer. */
  async function answeredEnd(): Promise<Position | undefined> {
    const waited = answers;
    const answer = endNow().then(
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
    if (waited) return within(answer, BEHIND_WAIT_MS, silent);
    answer.catch(() => undefined);
    return undefined;
  }

  function silent(): undefined {
    answers = false;
  }

  async function beyond(known: Position, ids: readonly string[], end: Position): Promise<Position | undefined> {
    if (ids.length > FEW.remote) return end;
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
    const [end, found] = await Promise.all([answeredEnd(), work()]);
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

function latest(known: Position, positions: readonly (Position | undefined)[]): Position | undefined {
  let last: Position | undefined;
  for (const one of positions) if (one !== undefined && one > (last ?? known)) last = one;
  return last;
}
