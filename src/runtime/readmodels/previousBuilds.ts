/** Builds that are kept though readers have left them, for going back. */
import type { ReadStore } from '../../ports/readStore.js';
import { sameVersion } from './buildNumbers.js';

/** A build that is kept though readers have left it. */
interface Left {
  readonly number: number;
  /** When it may be dropped: milliseconds since the epoch. */
  readonly until: number;
}

/** What was in use before the last swap, kept for a rollback. */
export interface PreviousBuild extends Left {
  /** The build of the release before the last deployment, where a rebuild came after that. */
  readonly release?: Left;
}

/** The build that can be rolled back to. @throws UnavailableError */
export async function previousBuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<PreviousBuild | undefined> {
  return (await records.get<PreviousBuild>(`previous/${name}`))?.value;
}

/** A previous build, and the one of the release before. */
export const withRelease = (previous: PreviousBuild | undefined): Left[] =>
  [previous, previous?.release].filter((one) => one !== undefined);

/** The previous builds that are still kept, the last one first. @throws UnavailableError */
export async function keptPreviousBuilds(store: Pick<ReadStore, 'records'>, name: string): Promise<Left[]> {
  return withRelease(await previousBuildOf(store, name)).filter(({ until }) => until > Date.now());
}

/** The last kept build of another version than that number's. @throws UnavailableError */
export async function keptRelease(
  store: Pick<ReadStore, 'records'>,
  name: string,
  other: number,
): Promise<Left | undefined> {
  return (await keptPreviousBuilds(store, name)).find(({ number }) => !sameVersion(number, other));
}

export async function putPreviousBuild(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  previous: PreviousBuild,
): Promise<void> {
  await records.put(`previous/${name}`, previous);
}
