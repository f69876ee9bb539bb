import { systemMs } from '../../lib/world.js';
import type { ReadStore } from '../../ports/readStore.js';
import { sameVersion } from './buildNumbers.js';

interface Left {
  readonly number: number;
  /** End of the build's retention, in milliseconds since the epoch. */
  readonly until: number;
}

/** The build in use before the last swap, retained for a rollback. */
interface PreviousBuild extends Left {
  /** The build of the release before the last deployment, if a rebuild came after that. */
  readonly release?: Left;
}

export async function previousBuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<PreviousBuild | undefined> {
  return (await records.get<PreviousBuild>(`previous/${name}`))?.value;
}

export const withRelease = (previous: PreviousBuild | undefined): Left[] =>
  [previous, previous?.release].filter((one) => one !== undefined);

/** Retained previous builds, the latest first. */
export async function retainedPreviousBuilds(store: Pick<ReadStore, 'records'>, name: string): Promise<Left[]> {
  return withRelease(await previousBuildOf(store, name)).filter(({ until }) => until > systemMs());
}

/** The latest retained build of another version than `other`. */
export async function keptRelease(
  store: Pick<ReadStore, 'records'>,
  name: string,
  other: number,
): Promise<Left | undefined> {
  return (await retainedPreviousBuilds(store, name)).find(({ number }) => !sameVersion(number, other));
}

export async function putPreviousBuild(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  previous: PreviousBuild,
): Promise<void> {
  await records.put(`previous/${name}`, previous);
}

/** Ends the retention of a build that is about to be dropped. */
export async function forgetPreviousBuild(
  store: Pick<ReadStore, 'records'>,
  name: string,
  number: number,
): Promise<void> {
  const builds = withRelease(await previousBuildOf(store, name));
  const others = builds.filter((one) => one.number !== number);
  if (others.length === builds.length) return;
  const [other] = others;
  if (other === undefined) await store.records.delete(`previous/${name}`);
  else await putPreviousBuild(store, name, { number: other.number, until: other.until });
}
