import { type Instances, openInstances } from './instances.js';
import type { AnyManager, OpenStates, Stateful } from './processManager.js';

export interface InstanceTable extends OpenStates {
  readonly all: readonly Instances[];
  of(manager: object): Instances;
  /** The instances whose managers follow this type of event. */
  following(type: string): readonly Instances[];
}

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

  return {
    all,
    of,
    following: (type) => byType.get(type) ?? [],
    state: <S>(manager: Stateful<S>, instance: string) => of(manager).states.get(instance) as S | undefined,
    byKey: <S>(manager: Stateful<S>, key: string) => of(manager).byKey(key) as S | undefined,
  };
}
