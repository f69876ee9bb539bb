/**
 * Builds of read models: their numbers, and the records of rebuilds and previous builds. docs/read-models.md explains
 * them.
 */
import type { ReadStore, StoredRecord } from '../../ports/readStore.js';
import type { Projection } from './projection.js';

/** More rebuilds than a version will ever see. */
const BUILDS = 1_000_000;

/** The version of a projection that filled a collection, and how often it had been built before. */
export interface Build {
  readonly version: number;
  /** 0: as it was first built; 1: its first rebuild. */
  readonly build: number;
}

/**
 * The number of a build's collection: `gifts@2` is version 2 as it was first built, `gifts@2000003` its third rebuild.
 */
export function numberOf({ version, build }: Build): number {
  return build === 0 ? version : version * BUILDS + build;
}

/** The build of a collection's number. */
export function buildOf(number: number): Build {
  return number < BUILDS
    ? { version: number, build: 0 }
    : { version: Math.floor(number / BUILDS), build: number % BUILDS };
}

/** Later builds, and builds of later versions, rank higher. */
export function rankOf(number: number): number {
  const { version, build } = buildOf(number);
  return version * BUILDS + build;
}

/** A build in words: `version 2`, `version 2, build 3`. */
export function buildText(number: number): string {
  const { version, build } = buildOf(number);
  return build === 0 ? `version ${version}` : `version ${version}, build ${build}`;
}

/**
 * Says that readers use another release's build, and who can do something about it. @param own the version of this
 * code. @param waiting what to do where the other release is an earlier one
 */
export function otherReleaseText(name: string, active: number, own: number, waiting: string): string {
  const later = buildOf(active).version > own;
  const instead = later
    ? 'end the processes of that release and start those of this one, which then takes its own version into use'
    : waiting;
  return `${name}: ${buildText(active)} is in use, this program makes version ${own}: use gift of the ${later ? 'later' : 'earlier'} release that made it, or ${instead}`;
}

/** The projection as it fills the collection of that number. */
export function asBuild(projection: Projection, number: number): Projection {
  return number === projection.version ? projection : { ...projection, version: number };
}

/** Whether the same code fills both collections. */
export function sameVersion(one: number, other: number): boolean {
  return buildOf(one).version === buildOf(other).version;
}

/**
 * The fold, be it a previous one, that fills the collection of that number; `undefined`: this code does not know it.
 */
export function foldOf(projection: Projection, number: number): Projection | undefined {
  const fold = [projection, ...(projection.previous ?? [])].find(({ version }) => sameVersion(version, number));
  return fold === undefined ? undefined : asBuild(fold, number);
}

/**
 * The build of this code's version: the one in use, else the one that was last in use, or the first. @param active the
 * number in use. @throws UnavailableError
 */
export async function keptBuild(
  store: Pick<ReadStore, 'records'>,
  projection: Projection,
  active: number | undefined,
): Promise<Projection> {
  const { name, version } = projection;
  if (active !== undefined && sameVersion(active, version)) return asBuild(projection, active);
  const previous =
    active === undefined
      ? undefined
      : withEarlier(await previousBuildOf(store, name)).find(({ number }) => sameVersion(number, version));
  return asBuild(projection, previous?.number ?? (await firstNumber(store, projection)));
}

const firstKey = (name: string, version: number): string => `first/${name}@${version}`;

/** The number of a version's first build: its own, unless that build was given up. */
async function firstNumber(
  { records }: Pick<ReadStore, 'records'>,
  { name, version }: Pick<Projection, 'name' | 'version'>,
): Promise<number> {
  return (await records.get<number>(firstKey(name, version)))?.value ?? version;
}

/** Sets the number of a version's first build. @throws UnavailableError */
export async function setFirstNumber(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  number: number,
): Promise<void> {
  await records.put(firstKey(name, buildOf(number).version), number);
}

/** A rebuild or rollback under way. A record: losing it leaves an unfinished collection that is dropped later. */
export interface Rebuild {
  readonly target: number;
  /** What was in use when it was asked for; `undefined`: nothing. */
  readonly from: number | undefined;
  readonly kind: 'rebuild' | 'rollback';
  /** docs/read-models.md#the-record-of-a-rebuild has what follows on what. */
  readonly state: 'building' | 'ready' | 'swapping' | 'aborting' | 'leaving';
  /** Whether a command builds it; else any process with the role projector does. */
  readonly attended: boolean;
  readonly by: string;
  readonly reason?: string;
  /** When it was asked for: ISO 8601, UTC, milliseconds. */
  readonly at: string;
}

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

/** Before the names of the records of rebuilds. */
export const REBUILDS = 'rebuild/';

/** The rebuild of a read model that is under way. @throws UnavailableError */
export async function rebuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<StoredRecord<Rebuild> | undefined> {
  return records.get<Rebuild>(REBUILDS + name);
}

/**
 * Replaces the record at version `expected` (0: none). @returns its version; `undefined`: another stands there. @throws
 * UnavailableError
 */
export async function putRebuild(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  rebuild: Rebuild,
  expected: number,
): Promise<number | undefined> {
  return records.put(REBUILDS + name, rebuild, { expected });
}

/** The build that can be rolled back to. @throws UnavailableError */
export async function previousBuildOf(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
): Promise<PreviousBuild | undefined> {
  return (await records.get<PreviousBuild>(`previous/${name}`))?.value;
}

const withEarlier = (previous: PreviousBuild | undefined): Left[] =>
  [previous, previous?.release].filter((one) => one !== undefined);

/** The previous builds that are still kept, the last one first. @throws UnavailableError */
export async function keptPreviousBuilds(store: Pick<ReadStore, 'records'>, name: string): Promise<Left[]> {
  return withEarlier(await previousBuildOf(store, name)).filter(({ until }) => until > Date.now());
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

/**
 * A number that no build of the version has ever had: what a process that was cut off still writes must reach no other
 * build. @throws UnavailableError
 */
export async function nextNumber(
  store: Pick<ReadStore, 'records' | 'active' | 'versions'>,
  { name, version }: Pick<Projection, 'name' | 'version'>,
): Promise<number> {
  const key = `builds/${name}@${version}`;
  for (;;) {
    const last = await store.records.get<number>(key);
    const known = [last?.value ?? 0, ...(await store.versions(name)), (await store.active(name)) ?? 0];
    const build =
      Math.max(
        0,
        ...known
          .map(buildOf)
          .filter((one) => one.version === version)
          .map((one) => one.build),
      ) + 1;
    const number = numberOf({ version, build });
    if ((await store.records.put(key, number, { expected: last?.version ?? 0 })) !== undefined) return number;
  }
}
