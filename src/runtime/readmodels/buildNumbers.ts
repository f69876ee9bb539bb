import type { Projection } from './projection.js';

/** Factor between version and build in a number; no version will have so many rebuilds. */
const BUILDS = 1_000_000;

export interface BuildId {
  readonly version: number;
  /** Number of the build within its version; 0: the first build. */
  readonly build: number;
}

/** `gifts@2` is the first build of version 2, `gifts@2000003` its third rebuild. */
export function numberOf({ version, build }: BuildId): number {
  return build === 0 ? version : version * BUILDS + build;
}

export function buildOf(number: number): BuildId {
  return number < BUILDS
    ? { version: number, build: 0 }
    : { version: Math.floor(number / BUILDS), build: number % BUILDS };
}

/** Later versions, and later builds of a version, rank higher. */
export function rankOf(number: number): number {
  const { version, build } = buildOf(number);
  return version * BUILDS + build;
}

/** Text of a build, for example `version 2` or `version 2, build 3`. */
export function buildText(one: number | BuildId): string {
  const { version, build } = typeof one === 'number' ? buildOf(one) : one;
  return build === 0 ? `version ${version}` : `version ${version}, build ${build}`;
}

/**
 * Message that a build of another release is in use.
 * @param own this code's version
 * @param waiting what to do if the other release is earlier
 */
export function otherReleaseText(name: string, active: number, own: number, waiting: string): string {
  const later = buildOf(active).version > own;
  const instead = later
    ? 'end the processes of that release and start those of this one, which then takes its own version into use'
    : waiting;
  return `${name}: ${buildText(active)} is in use, this program makes version ${own}: use gift of the ${later ? 'later' : 'earlier'} release that made it, or ${instead}`;
}

export function asBuild(projection: Projection, number: number): Projection {
  return number === projection.version ? projection : { ...projection, version: number };
}

export function sameVersion(one: number, other: number): boolean {
  return buildOf(one).version === buildOf(other).version;
}

/** The present or a previous fold that makes a build; `undefined`: this code has none. */
export function foldOf(projection: Projection, number: number): Projection | undefined {
  const fold = [projection, ...(projection.previous ?? [])].find(({ version }) => sameVersion(version, number));
  return fold === undefined ? undefined : asBuild(fold, number);
}
