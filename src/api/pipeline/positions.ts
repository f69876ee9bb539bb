/** `Gift-Position` (docs/design.md#read-your-writes): `{log id}:{position}`. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { READ_BY_ALL, type ReadBySome, type ReadModels } from '../../projections/index.js';
import { BEHIND_WAIT_MS } from '../../runtime/readmodels/readYourWrites.js';
import { within } from '../../lib/async/within.js';
import { HttpError } from './errors.js';

/** How long a read waits for its position, and a write for its read models, ms. */
const POSITION_WAIT_MS = 1000;

/** In an answer the position of its write; in a request the position to wait for. */
export const POSITION_HEADER = 'Gift-Position';

export interface Follower {
  /** Waits at most `timeoutMs`. False: not everything up to `position` is in it. */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/** All read models. */
export type Followers = Readonly<Record<keyof ReadModels, Follower>>;

/**
 * Waits for these read models, at most a second; `waitMs`: where single documents are read from the log meanwhile. Late
 * or unreachable ones are no error: the write stands, and a caller with an error would buy once more.
 */
export async function waitUntilProjected(
  position: Position,
  followers: readonly Follower[],
  waitMs = POSITION_WAIT_MS,
): Promise<void> {
  const reached = Promise.all(followers.map((follower) => follower.reached(position, waitMs))).catch(
    (error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
    },
  );
  await within(reached, waitMs, () => undefined);
}

export interface PositionGate {
  /** `undefined`: no header, or another log. @throws HttpError `invalid_position` */
  parse(header: string | undefined): Position | undefined;
  /** From a stored answer; `undefined`: no header, or another log. */
  stored(header: string | undefined): Position | undefined;
  format(position: Position): string;
  /**
   * Waits for the read models that all routes read and these. A route that reads single gifts or purchases waits for a
   * moment only: they are read from the log then.
   * @throws UnavailableError after a second, also where such a route's log does not answer or is not there yet
   */
  wait(position: Position, reads?: readonly ReadBySome[], readsSingly?: boolean): Promise<void>;
  /** Waits until these read models show the log's present end. @throws UnavailableError after a second, or without the log */
  waitForEnd(names: readonly (keyof ReadModels)[]): Promise<void>;
}

export function positionGate(
  events: Pick<EventStore, 'logId' | 'isPosition' | 'end'>,
  followers: Followers,
): PositionGate {
  const { logId } = events;
  const allReached = async (
    position: Position,
    names: readonly (keyof ReadModels)[],
    waitMs = POSITION_WAIT_MS,
  ): Promise<boolean> =>
    !(await Promise.all(names.map((name) => followers[name].reached(position, waitMs)))).includes(false);
  const endNow = async (): Promise<Position | undefined> =>
    within(events.end(), POSITION_WAIT_MS, () => {
      throw new UnavailableError('the log does not say where it ends');
    });
  return {
    async wait(position, reads = [], readsSingly = false) {
      const [own, common] = await Promise.all([
        allReached(position, reads),
        allReached(position, READ_BY_ALL, readsSingly ? BEHIND_WAIT_MS : POSITION_WAIT_MS),
      ]);
      if (own && common) return;
      // What every request reads is folded from streams then; what only this route reads is not.
      if (own && readsSingly && position <= ((await endNow()) ?? '')) return;
      // A position that the log has not reached yet gets the rest of the second.
      const restMs = POSITION_WAIT_MS - BEHIND_WAIT_MS;
      if (own && readsSingly && (await allReached(position, READ_BY_ALL, restMs))) return;
      throw new UnavailableError('the read models have not reached the position that was asked for');
    },
    async waitForEnd(names) {
      const last = await endNow();
      if (last !== undefined && !(await allReached(last, names)))
        throw new UnavailableError(`${names.join(', ')}: behind the log, which may hold what is missing`);
    },
    parse(header) {
      if (header === undefined) return undefined;
      const parsed = parsedPosition(header);
      if (parsed === undefined) throw new HttpError('invalid_position');
      if (parsed.log !== logId) return undefined;
      if (!events.isPosition(parsed.position)) throw new HttpError('invalid_position');
      return parsed.position;
    },
    stored(header) {
      const parsed = parsedPosition(header ?? '');
      return parsed?.log === logId && events.isPosition(parsed.position) ? parsed.position : undefined;
    },
    format: (position) => positionText(logId, position),
  };
}
