import type { RecordedEvent } from '../../ports/eventStore.js';
import { type Instances, openInstances } from './instances.js';
import type { AnyManager, OpenStates, Stateful } from './processManager.js';

export interface InstanceTable extends OpenStates {
  readonly all: readonly Instances[];
  of(manager: object): Instances;
  /** The instances whose managers follow this type of event. */
  following(type: string): readonly Instances[];
  partsOf(owner: Instances): readonly Instances[];
  /** The open parts of an instance; a part may be closed during the iteration. */
  openParts(owner: Instances, instance: string): Iterable<readonly [parts: Instances, part: string, state: unknown]>;
}

export type Target = readonly [of: Instances, instance: string];

export function instanceTable(managers: readonly AnyManager[]): InstanceTable {
  const all = managers.map((manager) => openInstances(manager));
  const byManager = new Map<object, Instances>(all.map((one) => [one.manager, one]));
  const byType = new Map<string, Instances[]>();
  for (const one of all)
    for (const type of Object.keys(one.manager.events)) byType.set(type, [...(byType.get(type) ?? []), one]);

  const of = (manager: object): Instances => {
    const found = byManager.get(manager);
    if (found === undefined) throw new Error('a process manager that is not listed');
    return found;
  };
  const partsOf = (owner: Instances): readonly Instances[] =>
    all.filter(({ manager: { partOf } }) => partOf?.manager === owner.manager);

  return {
    all,
    of,
    following: (type) => byType.get(type) ?? [],
    partsOf,
    *openParts(owner, instance) {
      for (const parts of partsOf(owner))
        for (const [part, state] of parts.states)
          if (parts.manager.partOf?.ownerOf(state) === instance) yield [parts, part, state];
    },
    state: <S>(manager: Stateful<S>, instance: string) => of(manager).states.get(instance) as S | undefined,
    byKey: <S>(manager: Stateful<S>, key: string) => of(manager).byKey(key) as S | undefined,
  };
}

/** The instances that an event goes to, found before any of them reacts. An owner also gets its parts' events. */
export function targetsOf(
  table: InstanceTable,
  event: RecordedEvent,
  type: string,
  among: readonly Instances[],
): readonly Target[] {
  const targets: Target[] = [];
  for (const one of among) {
    const { partOf } = one.manager;
    for (const instance of one.manager.instancesOf(event, table)) {
      targets.push([one, instance]);
      const part = one.states.get(instance);
      if (part !== undefined && partOf !== undefined && Object.hasOwn(partOf.manager.events, type))
        targets.push([table.of(partOf.manager), partOf.ownerOf(part)]);
    }
  }
  return targets;
}
