import { systemMs } from '../lib/world.js';
import type { FollowerHealth } from '../runtime/supervision/followers.js';
import { TREE_PART } from '../ops/evidence/index.js';
import type { Exposition, Sample } from './exposition.js';

const ALTERED: ReadonlySet<string> = new Set(['LogAlteredError', 'WitnessDisagreesError']);

export interface FollowersShown {
  readonly health: () => readonly FollowerHealth[];
  /** Time since when each work has no leader; `undefined`: it has one. */
  readonly withoutLeader: () => Iterable<readonly [work: string, since: Date | undefined]>;
  /** Whether outward work is held. */
  readonly outwardHeld: () => boolean;
  /** How often a process has taken the lead, by work. */
  readonly leaderChanges: () => Iterable<readonly [work: string, count: number]>;
}

/** Each follower of the process always has a sample, so that an alert can notice its absence. */
export function showFollowers(
  show: Exposition,
  { health, withoutLeader, outwardHeld, leaderChanges }: FollowersShown,
): void {
  const each = (value: (one: FollowerHealth) => number) => (): readonly Sample[] =>
    health().map((one): Sample => [[one.part], value(one)]);
  show.gauge(
    {
      name: 'gift_follower_failing',
      help: 'Whether a part of this process that is to run all the time fails again and again: 1 or 0',
      labels: ['part'],
    },
    each(({ failing }) => (failing ? 1 : 0)),
  );
  show.gauge(
    {
      name: 'gift_log_altered',
      help: 'Whether the log is not what was signed, or a witness says so: 1 or 0; shown by processes that may keep the tree',
    },
    () =>
      health().flatMap(({ part, failing, error = '' }): Sample[] =>
        part === TREE_PART ? [[[], failing && ALTERED.has(error) ? 1 : 0]] : [],
      ),
  );
  show.counter(
    {
      name: 'gift_leader_changes_total',
      help: 'How often a process has taken the lead since this one started: another one, or the same one again after a loss; the same in all processes',
      labels: ['work'],
    },
    () => Array.from(leaderChanges(), ([work, count]): Sample => [[work], count]),
  );
  show.gauge(
    {
      name: 'gift_outward_work_held',
      help: 'Whether nothing is charged, sent or delivered, since the log was copied, restored or held: 1 or 0',
    },
    () => [[[], outwardHeld() ? 1 : 0]],
  );
  show.gauge(
    {
      name: 'gift_no_leader_seconds',
      help: 'For how long no process has led the read models, or the process managers; 0: one does',
      labels: ['work'],
    },
    () =>
      Array.from(withoutLeader(), ([work, since]): Sample => [
        [work],
        since === undefined ? 0 : Math.max(0, (systemMs() - since.getTime()) / 1_000),
      ]),
  );
}
