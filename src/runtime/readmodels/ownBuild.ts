import type { ReadStore } from '../../ports/readStore.js';
import { asBuild, buildOf, numberOf, sameVersion } from './buildNumbers.js';
import { forgetPreviousBuild, previousBuildOf, withRelease } from './previousBuilds.js';
import type { Projection } from './projection.js';

/** This version's build in use, else its last build in use, else its first build. */
export async function ownBuild(
  store: Pick<ReadStore, 'records'>,
  projection: Projection,
  active: number | undefined,
): Promise<Projection> {
  const { name, version } = projection;
  if (active !== undefined && sameVersion(active, version)) return asBuild(projection, active);
  const previous =
    active === undefined
      ? undefined
      : withRelease(await previousBuildOf(store, name)).find(({ number }) => sameVersion(number, version));
  return asBuild(projection, previous?.number ?? (await firstNumber(store, projection)));
}

const firstKey = (name: string, version: number): string => `first/${name}@${version}`;

/** Number of the build that counts as a version's first: the version itself, unless that build was abandoned. */
async function firstNumber(
  { records }: Pick<ReadStore, 'records'>,
  { name, version }: Pick<Projection, 'name' | 'version'>,
): Promise<number> {
  return (await records.get<number>(firstKey(name, version)))?.value ?? version;
}

export async function setFirstNumber(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  number: number,
): Promise<void> {
  await records.put(firstKey(name, buildOf(number).version), number);
}

/** Ensures that no process opens this build again, so that late writes to it reach no readers. */
export async function abandonNumber(store: ReadStore, name: string, number: number): Promise<void> {
  await forgetPreviousBuild(store, name, number);
  const { version } = buildOf(number);
  if ((await firstNumber(store, { name, version })) === number)
    await setFirstNumber(store, name, await nextNumber(store, { name, version }));
}

/** A build number never used before, so that late writes of a process that was cut off reach no other build. */
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
