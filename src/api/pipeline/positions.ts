/** The header `Gift-Position` (docs/design.md#read-your-writes), whose value is `{log id}:{position}`. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { READ_BY_ALL, type ReadBySome, type ReadModels } from '../../projections/index.js';
import { BEHIND_WAIT_MS } from '../../runtime/readmodels/index.js';
import { within } from '../../lib/async/within.js';
import { HttpError } from './errors.js';

/** How long a read waits for its position, and a write for its read models, ms. */
const POSITION_WAIT_MS = 1000;

/** Header with a log position: in an answer the position of its write; in a request the position to wait for. */
export const POSITION_HEADER = 'Gift-Position';

export interface Follower {
  /** Waits for the position, at most `timeoutMs` ms. False: the read model lacks events up to `position`. */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/** Waits of all read models, by the read model's name. */
type ReadModelWaits = Readonly<Record<keyof ReadModels, Follower>>;

/**
 * Waits for these read models, at most a second; `waitMs` is shorter where single documents can be read from the log. A
 * late or unreachable read model is no error: the write is stored, and a caller that got an error would buy once more.
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
  /**
   * Position in a request's header; `undefined` without a header or for another log. @throws HttpError
   * `invalid_position`
   */
  parse(header: string | undefined): Position | undefined;
  /** Position in a stored answer's header; `undefined` without a valid position of this log. */
  stored(header: string | undefined): Position | undefined;
  format(position: Position): string;
  /**
   * Waits for the read models that all routes read, and for `reads`. A route that reads single gifts or purchases waits
   * for a moment only: it reads them from the log then.
   * @throws UnavailableError after a second, also where such a route's log does not answer or has not reached the
   * position
   */
  wait(position: Position, reads?: readonly ReadBySome[], readsSingly?: boolean): Promise<void>;
  /**
   * Waits until these read models show the log's present end.
   * @throws UnavailableError after a second, or without the log
   */
  waitForEnd(names: readonly (keyof ReadModels)[]): Promise<void>;
}

export function positionGate(
  events: Pick<EventStore, 'logId' | 'isPosition' | 'end'>,
  followers: ReadModelWaits,
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
      // Documents of the common read models are folded from streams then; those of the route's own read models are not.
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
