/** Reads the events for one endpoint into its backlog, as far as the backlog has room. */
import { pause } from '../lib/async/pause.js';
import { ticks } from '../lib/world.js';
import type { Position } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type EndpointDocument, endpointDocument } from '../projections/webhookEndpoints.js';
import { forgetAbandoned } from './abandoned.js';
import { hasRoom, type LineState, mayWork } from './lineState.js';
import { readAgain, type Reading, readNew } from './reading.js';

/** Milliseconds before the feed is read again for an endpoint after a failed read. */
const READ_AGAIN_MS = 1_000;

interface LineReader {
  /** Called when there may be new events. */
  wake(): void;
  /** Starts reading if there is something to read and room for it. */
  readOn(): void;
  /** Forgets which sources the endpoint's events come from; the next read finds them again. */
  forgetSources(): void;
  /** Whether events of these sources may be for the endpoint. */
  isOf(named: ReadonlySet<string>): boolean;
  /** Whether there may be events after the cursor, and room for them. */
  isDue(): boolean;
  /** Resolves once nothing is being read. */
  ended(): Promise<void>;
}

/** @param take adds the items to the backlog and applies the change to the progress */
export function lineReader(line: LineState, take: (reading: Pick<Reading, 'items' | 'change'>) => void): LineReader {
  const { deps } = line;
  /** Whether there may be events after the cursor. */
  let behind = true;
  let sources: readonly string[] | undefined;
  let reading: Promise<void> | undefined;
  /** Events requested again and new events are read in turns, so that neither hold up the other. */
  let newIsNext = false;

  /** @returns whether there was anything to read */
  async function takeAgain(): Promise<boolean> {
    const again = await readAgain(deps, line.endpoint, line.progress);
    if (again === undefined) return false;
    take(again);
    if (again.taken === undefined) return true;
    // The progress with these events is stored before their old records go, so that a kill between the two loses none.
    await line.saver.save();
    await forgetAbandoned(deps.records, line.id, again.items);
    return true;
  }

  /** Whether the endpoint gets these types at `position`, or at a later one. @throws UnavailableError */
  async function hasTypes(types: EndpointDocument['types'], position: Position): Promise<boolean> {
    if (!(await deps.endpoints.reached(position, READ_AGAIN_MS, 'patient')))
      throw new UnavailableError('the read model of webhook endpoints is behind');
    const found = (await deps.endpoints.get(endpointDocument(line.id))) as EndpointDocument | undefined;
    return String(found?.types) === String(types);
  }

  /** @returns whether there was anything to read */
  async function takeNew(): Promise<boolean> {
    if (!behind) return false;
    // Cleared before the read: a `wake` while it runs sets it again.
    behind = false;
    try {
      const { types } = line.endpoint;
      const found = await readNew(deps, line.endpoint, line.progress);
      // Events that follow a change of the types on the log are read with the new ones, once `update` has them.
      if (found.cursor > line.progress.cursor && !(await hasTypes(types, found.cursor))) return false;
      ({ sources } = found);
      behind ||= found.more;
      take(found);
    } catch (error) {
      behind = true;
      throw error;
    }
    return true;
  }

  async function read(): Promise<void> {
    while (mayWork(line) && hasRoom(line)) {
      newIsNext = !newIsNext;
      const [first, second] = newIsNext ? [takeNew, takeAgain] : [takeAgain, takeNew];
      if (!(await first()) && !(await second())) return;
    }
  }

  /** Reads, and waits after a failure. It never throws: unreadable events of one endpoint hold up no other. */
  async function readOrWait(): Promise<void> {
    try {
      await read();
      line.movedAt = ticks();
      line.report(undefined);
    } catch (error) {
      if (!(error instanceof UnavailableError)) return deps.fail(error);
      line.report(error);
      behind = true;
      await pause(READ_AGAIN_MS, line.closing.signal);
    }
  }

  function start(): void {
    if (!mayWork(line) || reading !== undefined) return;
    reading = readOrWait().finally(() => {
      reading = undefined;
      if (behind && hasRoom(line)) start();
    });
  }

  return {
    wake() {
      behind = true;
      if (hasRoom(line)) start();
    },
    readOn() {
      const { recovering, recoveringAbandoned } = line.progress;
      if (behind || recovering.length > 0 || recoveringAbandoned !== undefined) start();
    },
    forgetSources: () => void (sources = undefined),
    isOf: (named) => sources === undefined || sources.some((name) => named.has(name)),
    isDue: () => behind && hasRoom(line),
    ended: async () => reading,
  };
}
