/** The followers of this process, and whether any process of the installation leads. */
import type { FollowerHealth } from '../runtime/supervision/followers.js';
import type { Exposition, Sample } from './exposition.js';

/** What is shown. */
export interface FollowersShown {
  /** How the followers of this process fare. */
  readonly health: () => readonly FollowerHealth[];
  /** By what is led: since when no process leads; `undefined`: one does. */
  readonly nobodyLeads: () => Iterable<readonly [work: string, since: Date | undefined]>;
}

/** Shows them. Each follower of the process has its sample at any time, so that an alert can go by its absence. */
export function showFollowers(show: Exposition, { health, nobodyLeads }: FollowersShown): void {
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
      name: 'gift_nobody_leads_seconds',
      help: 'For how long no process has led the read models, or the process managers; 0: one does',
      labels: ['work'],
    },
    () =>
      Array.from(nobodyLeads(), ([work, since]): Sample => [
        [work],
        since === undefined ? 0 : Math.max(0, (Date.now() - since.getTime()) / 1_000),
      ]),
  );
}
